"""The node between two turns: it polls the queues, prepares the next turn and measures the context.

How a queue is read lives in `queues`; whether the batch asked to go on was decided by `stop_hook`.
"""

from dataclasses import replace
from typing import Any

from loopwright.errors import ConfigurationError
from loopwright.events import TurnStart
from loopwright.hooks import NextTurn, settled
from loopwright.judging import correct
from loopwright.limits import has_last_answer, open_last_answer, reached
from loopwright.planning import revised
from loopwright.queues import deliver, take
from loopwright.runs import Run, Update, ledger, opened_turn
from loopwright.settings import Settings
from loopwright.state.schema import AgentState, Decision, View
from loopwright.state.view import exceeds_window, measure
from loopwright.turns import turn_context
from loopwright.unfinished import ask_again
from loopwright.watching import cautioned


async def queue_drain(state: AgentState, run: Run) -> Update:
    """Decide whether there is another turn, and open it. Writes `turn`, `idle` or `compact`.

    Polls (S2-02): steering before turn 1 (unless `load` polled) and after every turn; follow-ups
    only when nothing else would go on; steering once more behind `prepare_next_turn`, only if
    nothing is pending. At a limit nothing is taken: it stays queued for the next run.
    """
    kind, cursor = state["decision"]["kind"], state["cursor"]
    if kind == "opening_polled":
        return await _measured(state, run, {})
    if kind == "opening":
        await deliver(run, await take(run, cursor, "steering"))
        return await _measured(state, run, {})
    if kind == "again" and has_last_answer(state, run):
        return await _measured(state, run, await open_last_answer(state, run))
    if kind == "satisfied" and reached(state, run):
        return {"decision": Decision(kind="idle")}
    pending = await take(run, cursor, "steering")
    if kind == "satisfied" and pending is None:
        pending = await take(run, cursor, "follow_up")
        if pending is None:
            return {"decision": Decision(kind="idle")}
    update = await _prepared(state, run)
    if pending is None:
        pending = await take(run, cursor, "steering")
    turn = state["run"]["turn"] + 1
    await run.emit(TurnStart(turn=turn))
    await (ask_again(run, kind) if pending is None else deliver(run, pending))
    return await _measured(state, run, {**update, "run": opened_turn(state["run"], turn)})


async def _prepared(state: AgentState, run: Run) -> dict[str, Any]:
    """What `prepare_next_turn` changes for the rest of the run."""
    hook = run.dependencies.hooks.prepare_next_turn
    if hook is None:
        return {}
    change: NextTurn | None = await settled(hook(turn_context(state, run)))
    if change is None:
        return {}
    update: dict[str, Any] = {}
    settings = _adjusted(run.settings, change)
    if settings != run.settings:
        run.settings = settings
        update["settings"] = settings.to_json()
    if change.system_prompt is not None:
        update["system_prompt"] = change.system_prompt
    if change.plan is not None:
        update["plan"] = revised(state, run, change.plan)
    if change.messages is not None:
        size = len(state["messages"])
        update["view"] = View(head=list(change.messages), start=size, measured_from=size)
    return update


def _adjusted(settings: Settings, change: NextTurn) -> Settings:
    """The settings with what the hook named."""
    return replace(
        settings,
        model=settings.model if change.model is None else change.model,
        thinking_level=change.thinking_level or settings.thinking_level,
        tools=settings.tools if change.tools is None else tuple(change.tools),
    )


async def _measured(state: AgentState, run: Run, update: dict[str, Any]) -> Update:
    """Another turn, behind what its model has to be told first, and behind a compaction if the
    context has grown too large for the model.
    """
    await correct(state["decision"], run)
    update = await cautioned(state, run, update)
    window = run.settings.context_window or _window_of_model(run)
    if window is None:
        return {**update, "decision": Decision(kind="turn")}
    tokens = measure(update.get("view", state["view"]), ledger(state, run))
    full = exceeds_window(tokens, window, run.settings.compaction_threshold)
    return {**update, "decision": Decision(kind="compact" if full else "turn")}


def _window_of_model(run: Run) -> int | None:
    """The window of the run's model; not known of one in whose place another will be asked."""
    name = run.settings.model
    try:
        return run.dependencies.resolve(name).context_window(name)
    except ConfigurationError:
        if not run.settings.fallback:
            raise
        return None
