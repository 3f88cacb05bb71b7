"""The node that ends a run in good order: totals, the outcome, `agent_end`.

Which rule ended the run was decided before; a fault ends in `fail` instead.
"""

from langchain_core.messages import AnyMessage

from loopwright.events import AgentEnd, RunStatus
from loopwright.judging import INVALID_OUTPUT, REFUSED_OUTPUT
from loopwright.limits import STATUSES
from loopwright.outcome import outcome_of
from loopwright.runs import Run, Update, changed
from loopwright.spending import usage_of
from loopwright.state.messages import ABORTED, calls, error_of, stop_reason
from loopwright.state.schema import AgentState, Decision
from loopwright.unfinished import OUTPUT_LIMIT
from loopwright.watching import TOKEN_BUDGET


async def finish(state: AgentState, run: Run) -> Update:
    """Emit `agent_end` and store the outcome. Writes `done`."""
    record = state["run"]
    produced = state["messages"][record["first"] :]
    answered = record.get("answered")
    status, reason = verdict(state["decision"], state["messages"])
    if status == "completed" and answered is not None:
        reason = "answered"  # its tool takes the answer, it does not end the run
    end = AgentEnd(
        thread=run.thread,
        status=status,
        reason=reason,
        messages=produced,
        usage=usage_of(produced, record.get("aside")),
        turns=record["turn"],
        error=_error(state["decision"], state["messages"]) if status == "failed" else None,
        output=None if answered is None else answered["value"],
    )
    await run.emit(end)
    return {
        "decision": Decision(kind="done"),
        "run": changed(record, status="ended"),
        "result": outcome_of(end, run.id),
    }


def verdict(decision: Decision, messages: list[AnyMessage]) -> tuple[RunStatus, str]:
    """Status and the name of the rule that ended the run (K9)."""
    if decision["kind"] == "hard_stop":
        aborted = stop_reason(_last_answer(messages)) == ABORTED
        return ("cancelled", "aborted") if aborted else ("failed", "model_error")
    if decision["kind"] == "stopped":
        reason = decision.get("reason", "stopped")
        return _STOPPED.get(reason, "stopped"), reason
    return "completed", "terminated" if calls(_last_answer(messages)) else "answered"


_STOPPED: dict[str, RunStatus] = {
    **STATUSES,
    TOKEN_BUDGET: "limit",
    INVALID_OUTPUT: "failed",
    REFUSED_OUTPUT: "failed",
    "context_overflow": "failed",
    OUTPUT_LIMIT: "failed",
    "aborted": "cancelled",
}


def _last_answer(messages: list[AnyMessage]) -> AnyMessage:
    return next(message for message in reversed(messages) if message.type == "ai")


def _error(decision: Decision, messages: list[AnyMessage]) -> dict[str, str] | None:
    if "error" in decision:
        return decision["error"]
    if decision.get("reason") == "context_overflow":
        text = "the context does not fit the model and nothing is left to summarise"
        return {"kind": "context_overflow", "message": text}
    if decision.get("reason") == OUTPUT_LIMIT:
        text = (
            "the output limit of the model stops this: its tool calls were cut off again and again "
            "and none was run; raise its limit (max_tokens), or ask for less in one step"
        )
        return {"kind": OUTPUT_LIMIT, "message": text}
    return error_of(_last_answer(messages))
