"""The node that begins a run: it admits the input, mends the transcript and freezes the settings.

What an input may hold was checked by the entrance; what follows is `queue_drain`'s.
"""

import asyncio
from dataclasses import dataclass, field, replace

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.errors import ConfigurationError, ContinuationError, InputError, LoopwrightError
from loopwright.events import AgentStart, Repair, TurnStart
from loopwright.failpoints import reach
from loopwright.forms import OutputForm
from loopwright.limits import overridden, require_fit
from loopwright.planning import carried, require_plan_tool
from loopwright.providers.contract import Provider, SchemaSupport
from loopwright.queues import Taken, deliver, take
from loopwright.recovery import unanswered
from loopwright.runs import Run, Update, opened
from loopwright.settings import Settings
from loopwright.state.ids import Ids
from loopwright.state.linking import require_linked
from loopwright.state.repair import repair
from loopwright.state.schema import (
    Admission,
    AgentState,
    Cursor,
    Decision,
    View,
    no_cursor,
)
from loopwright.state.transcript import faults
from loopwright.state.view import moved, whole_ledger
from loopwright.structured import settled_form


@dataclass(frozen=True)
class _Opening:
    """What a run begins with: prompts of its caller, or messages that waited in a queue."""

    decision: Decision
    prompts: list[AnyMessage] = field(default_factory=list)
    taken: Taken | None = None


async def load(state: AgentState, run: Run) -> Update:
    """Start a run. Writes `opening`, `opening_polled` (its prompt came from a queue) or `refused`.

    Emits `agent_start`, `repair` if something was mended, `turn_start`, and the prompts' pairs.
    A refused run emits nothing and leaves the ledger as it was. A provider that fails to come up
    for another reason than its configuration is a fault behind the prompts, which are kept.
    """
    history, report = await _mended(state, run)
    cursor = state.get("cursor") or no_cursor()
    try:
        run.settings = frozen_settings(run)
        found = await _resolved(run)
        run.settings = replace(run.settings, output=_form(run, found))
        run.ids = Ids.of(history)
        _require_sound(run, [*history, *state["input"]["messages"]])
        opening = await _opening(state["input"], history, cursor, run)
    except (ConfigurationError, ContinuationError, InputError) as error:
        return _refused(run, error)
    if history is not state.get("messages"):
        run.rewritten = history
    await _open(run, history, report)
    for message in opening.prompts:
        await run.append(message)
    await deliver(run, opening.taken)
    _require_provider(found, run)
    return {
        "decision": opening.decision,
        "run": opened(run, len(history)),
        "settings": run.settings.to_json(),
        "system_prompt": _system_prompt(state, run),
        "view": _loaded_view(state, history),
        "cursor": cursor,
        "held": None,
        **carried(state, run, is_empty=not history),
    }


def _require_sound(run: Run, messages: list[AnyMessage]) -> None:
    """Raise InputError for more messages than allowed, and for what the policy refuses."""
    require_fit(run.settings.limits, messages)
    if run.settings.repair_policy == "refuse":
        require_linked(messages)


async def _resolved(run: Run) -> "asyncio.Future[Provider]":
    """The provider, or whatever kept it from coming up. Raises ConfigurationError.

    In a thread, because the first use of a provider imports its client library.
    """
    resolve, name = run.dependencies.resolve, run.settings.model
    found = asyncio.ensure_future(asyncio.to_thread(resolve, name))
    await asyncio.wait([found])
    if isinstance(found.exception(), ConfigurationError):
        _require_provider(found, run)
    return found


def _require_provider(found: "asyncio.Future[Provider]", run: Run) -> None:
    """Raise what kept a provider from coming up, unless another model can be asked."""
    if found.exception() is not None and not run.settings.fallback:
        found.result()


def _form(run: Run, found: "asyncio.Future[Provider]") -> OutputForm | None:
    """The form of the final answer. Raises ConfigurationError."""
    name = run.settings.model
    support: SchemaSupport = "untested"
    if found.exception() is None:
        support = found.result().schema_support(name)
    parts = run.dependencies
    return settled_form(run.settings, parts.output, parts.tools.select(run.settings.tools), support)


async def _opening(
    admission: Admission, history: list[AnyMessage], cursor: Cursor, run: Run
) -> _Opening:
    """What the run begins with. Raises InputError and ContinuationError."""
    if admission["kind"] == "prompt":
        _require_fit(history, admission["messages"], run.ids or Ids.of(history))
        prompts = [run.identify(message) for message in admission["messages"]]
        return _Opening(Decision(kind="opening"), prompts)
    if not history:
        raise ContinuationError(
            f"thread {run.thread!r} has no messages to continue from: send a prompt",
            thread=run.thread,
        )
    if not isinstance(history[-1], AIMessage):
        return _Opening(Decision(kind="opening"))
    taken, decision = await _from_queues(run, cursor)
    if taken is None:
        raise ContinuationError(
            f"thread {run.thread!r} ends with an answer and nothing is queued: send a prompt, "
            "or queue a message with steer() or follow_up()",
            thread=run.thread,
        )
    return _Opening(decision, taken=taken)


async def _open(run: Run, history: list[AnyMessage], report: dict[str, int]) -> None:
    for view in run.emitter.views:
        view.begin(history)
    await run.emit(AgentStart(thread=run.thread, resumed_from=run.resumed_from))
    if report:
        await run.emit(Repair(report=report))
    await run.emit(TurnStart(turn=1))


def frozen_settings(run: Run) -> Settings:
    """The agent's settings with this run's overrides. Raises ConfigurationError."""
    settings, overrides = run.dependencies.settings, run.overrides
    if "model" in overrides:
        settings = replace(settings, model=overrides["model"])
    if "tools" in overrides:
        settings = replace(settings, tools=tuple(overrides["tools"]))
    if "output" in overrides:
        settings = replace(settings, output=OutputForm(schema=overrides["output"]))
    settings = replace(settings, limits=overridden(settings.limits, overrides))
    unknown = set(settings.tools or ()) - set(run.dependencies.tools.names())
    if unknown:
        known = ", ".join(run.dependencies.tools.names()) or "none"
        raise ConfigurationError(f"unknown tool {min(unknown)!r}: known are {known}", field="tools")
    require_plan_tool(settings, run.dependencies.tools)
    return settings


def _system_prompt(state: AgentState, run: Run) -> str:
    """The run's own, else the agent's, else the one the thread was begun with (S3-06)."""
    given = run.overrides.get("system_prompt", run.dependencies.system_prompt)
    return state.get("system_prompt", "") if given is None else given


async def _mended(state: AgentState, run: Run) -> tuple[list[AnyMessage], dict[str, int]]:
    """The transcript that the run starts with, and what was mended (empty: nothing).

    It is the stored one, repaired as the policy says, or the one that its owner has edited. What
    the journal knows of a call answers it: its result, or that it was never started.
    """
    history = state.get("messages", []) if run.transcript is None else run.transcript
    record = state.get("run")
    died = record is not None and record["status"] == "running"
    if died and record is not None:
        run.resumed_from = record["id"]
    policy = run.dependencies.settings.repair_policy
    cancelled = (state.get("result") or {}).get("status") == "cancelled"  # it may have been cut
    skipped = policy in ("off", "refuse") or (policy == "died" and not died and not cancelled)
    if skipped or not faults(history):
        return history, {}
    known = await unanswered(history, state.get("held"), run)
    mended, report = repair(history, known.results, known.extra)
    reach("repair")
    return mended, report.counts()


def _loaded_view(state: AgentState, history: list[AnyMessage]) -> View:
    """The last compaction's view, moved along if a repair rewrote the ledger."""
    compaction, stored = state.get("compaction"), state.get("messages", [])
    if compaction is None:
        return whole_ledger()
    return compaction if history is stored else moved(compaction, stored, history)


async def _from_queues(run: Run, cursor: Cursor) -> tuple[Taken | None, Decision]:
    """The prompt of a continuation behind an assistant message: steering first, else follow-ups.

    The first poll of such a run is skipped only if steering was taken (S2-08).
    """
    taken = await take(run, cursor, "steering")
    if taken is not None:
        return taken, Decision(kind="opening_polled")
    return await take(run, cursor, "follow_up"), Decision(kind="opening")


def _require_fit(history: list[AnyMessage], prompts: list[AnyMessage], stored: Ids) -> None:
    """Raise InputError for prompts that cannot follow the transcript.

    Their ids must be new, and their tool calls and results must pair.
    """
    edited = next((m.id for m in prompts if m.id in stored.messages), None)
    if edited is not None:
        raise InputError(
            f"message {edited!r} is already stored: send new messages only, or fork the thread"
        )
    own = Ids.of(prompts).calls | {m.tool_call_id for m in prompts if isinstance(m, ToolMessage)}
    found = faults([*history, *prompts]) if own else []
    fault = next((f for f in found if f.at >= len(history) and f.id in own), None)
    if fault is not None:
        what = fault.kind.replace("_", " ")
        raise InputError(
            f"the messages cannot follow the transcript: {what}, call {fault.id!r}. Behind a "
            "message with tool calls send the results, in order, under call ids that are new"
        )


def _refused(run: Run, error: LoopwrightError) -> Update:
    run.refusal = error
    return {
        "decision": Decision(
            kind="refused", error={"kind": type(error).__name__, "message": str(error)}
        )
    }
