"""The node that ends a run after a fault: an exception of a hook, listener, converter or model.

A failed *answer* is not a fault: it is an assistant message and ends in `finish`.
"""

from loopwright.events import AgentEnd, TurnEnd
from loopwright.nodes.stop_hook import close_open_calls
from loopwright.outcome import outcome_of
from loopwright.runs import Run, Update, changed
from loopwright.spending import usage_of
from loopwright.state.messages import ABORTED, ERROR, failure
from loopwright.state.repair import interrupted
from loopwright.state.schema import AgentState, Decision, held_results


async def fail(state: AgentState, run: Run) -> Update:
    """Append the message that stands for the failure and end the run (S2, BEHAVIOUR 9).

    Calls whose result is not known may have taken effect, and their answer says so. `agent_end`
    lists the failure message only. An exception raised in here leaves the graph: the caller gets
    it, and the next run repairs the thread.
    """
    error = state["decision"].get("error", {"kind": "fault", "message": "unknown fault"})
    known = held_results(state.get("held"))
    await close_open_calls(state, run, lambda call: known.get(call.id) or interrupted(call))
    reason = ABORTED if run.signal.aborted else ERROR
    message = await run.append(
        failure(error["message"], kind=error["kind"], reason=reason, model=run.settings.model)
    )
    await run.emit(TurnEnd(message=message, tool_results=[]))
    record = state["run"]
    end = AgentEnd(
        thread=run.thread,
        status="cancelled" if reason == ABORTED else "failed",
        reason="aborted" if reason == ABORTED else "fault",
        messages=[message],
        usage=usage_of(state["messages"][record["first"] :], record.get("aside")),
        turns=record["turn"],
        error=error,
    )
    await run.emit(end)
    return {
        "decision": Decision(kind="done"),
        "run": changed(record, status="ended"),
        "result": outcome_of(end, run.id),
    }
