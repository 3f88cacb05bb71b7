"""The node behind every assistant message and its batch: it ends the turn and may end the run.

Whether the batch wants to go on was decided before; whether something is queued is not asked here.
"""

from collections.abc import Callable

from langchain_core.messages import AIMessage, ToolMessage

from loopwright.budgets import recount
from loopwright.cancelling import is_cut
from loopwright.events import TurnEnd
from loopwright.hooks import settled
from loopwright.judging import concluded
from loopwright.limits import has_last_answer, is_last_answer, reached
from loopwright.planning import followed
from loopwright.runs import Run, Update, ledger
from loopwright.state.messages import Call, open_calls, tool_error
from loopwright.state.schema import AgentState, Decision, DecisionKind
from loopwright.turns import last_turn, turn_context
from loopwright.unfinished import out_of_room
from loopwright.watching import barred_by, warn


async def stop_hook(state: AgentState, run: Run) -> Update:
    """Emit `turn_end`, then look at the rules that stop a run. Writes `stopped` or passes on.

    Behind a `hard_stop` no rule and no hook is asked (S2-05). A truthy `should_stop_after_turn` and
    a limit stop a run even when the batch wanted another turn; a run that was cut stops here.
    """
    kind = _came_to(state)
    if kind == "hard_stop":
        not_executed = run.dependencies.wording.not_executed
        await close_open_calls(state, run, lambda call: tool_error(call, not_executed))
    message, results = last_turn(ledger(state, run))
    await run.emit(TurnEnd(message=message, tool_results=results), stored=not run.appended)
    if kind == "hard_stop":
        return {"decision": Decision(kind="hard_stop")}
    await warn(state, run)
    await recount(state, run)
    plan, drift = followed(state, run, message, results)
    if rule := barred_by(results) or drift or (kind == "again" and out_of_room(state, run)):
        return {**plan, "decision": Decision(kind="stopped", reason=rule)}
    answered, decision = concluded(state, run, message, results)
    decision = decision or Decision(kind=kind)
    if decision["kind"] != "stopped":
        decision = await _after_turn(state, run, decision)
    return {**plan, **answered, "decision": decision}


def _came_to(state: AgentState) -> DecisionKind:
    """What the turn came to; as at the edges, an edited transcript decides by its last message."""
    decision, tail = state["decision"], state["messages"][-1:]
    if not tail or decision.get("about") == tail[0].id:
        return decision["kind"]
    return "again" if isinstance(tail[0], ToolMessage) else "satisfied"


async def _after_turn(state: AgentState, run: Run, decision: Decision) -> Decision:
    if is_cut(run):
        return Decision(kind="stopped", reason="aborted")
    hook = run.dependencies.hooks.should_stop_after_turn
    if hook is not None and await settled(hook(turn_context(state, run))):
        return Decision(kind="stopped", reason="should_stop_after_turn")
    limit = (
        reached(state, run) if decision["kind"] == "again" or is_last_answer(state, run) else None
    )
    if limit is None or has_last_answer(state, run):
        return decision
    return Decision(kind="stopped", reason=limit)


async def close_open_calls(
    state: AgentState, run: Run, answer: Callable[[Call], ToolMessage]
) -> None:
    """Answer the calls that will get no result any more, if the policy says so (K1, K24)."""
    messages = ledger(state, run)
    if run.settings.cancel_policy != "record" or not any(
        isinstance(message, AIMessage) for message in messages
    ):
        return
    for call in open_calls(messages):
        await run.append(answer(call))
