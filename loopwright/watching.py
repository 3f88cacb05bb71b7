"""What a run does about its own calls: the ones that are not executed, the notes, the ends.

What counts as a repetition is said in `repetition`, what a limit is in `limits`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from loopwright.events import Budget, Repetition
from loopwright.repetition import CallHistory, Warned
from loopwright.runs import Run, changed
from loopwright.spending import usage_of
from loopwright.state.messages import Call
from loopwright.state.notes import note
from loopwright.state.schema import AgentState, RunRecord
from loopwright.tools.contract import ToolResult
from loopwright.wording import Wording

REPEATED, TOKEN_BUDGET = "repeated_action", "token_budget"
"""The reasons of runs that end because of what their last calls were."""

_NOT_EXECUTED = "not_executed"
"""The key in the details of a result whose call was kept from running; its value is the reason."""


@dataclass(frozen=True)
class _History:
    """The calls of the run, and up to where in the ledger they were taken."""

    calls: CallHistory
    taken: int
    base: int
    """Messages of the ledger before those that the current step adds."""


def follow(state: AgentState, run: Run) -> None:
    """Take what the ledger and the current step have added since; O(new messages)."""
    run.watch.concluding = state["run"].get("concluding", False)
    if run.settings.repetition == "off":
        return
    history = run.watch.history or _History(
        CallHistory(run.settings.repetition, lambda name: _is_repeatable(run, name)),
        state["run"]["first"],
        0,
    )
    stored = state["messages"]
    _take(run, replace(history, base=len(stored)), stored[history.taken :])


def _take(run: Run, history: _History, messages: Sequence[AnyMessage]) -> None:
    for message in messages:
        history.calls.take(message)
    taken = history.taken + len(messages)
    added = run.appended[max(0, taken - history.base) :]
    for message in added:
        history.calls.take(message)
    run.watch.history = replace(history, taken=taken + len(added))


def _is_repeatable(run: Run, name: str) -> bool:
    tool = run.dependencies.tools.get(name) or run.offered_tools().get(name)
    return name in run.settings.repeatable or (tool is not None and tool.repeatable)


def barred(run: Run, call: Call) -> ToolResult | None:
    """The result of a call that must not be executed, None for one that may be. It is asked in the
    order of the calls; what stands behind a call that is barred is barred too.
    """
    wording, history = run.dependencies.wording, run.watch.history
    form = run.settings.output
    if form is not None and form.name == call.name:  # it ends the run; its repairs bound it
        return None
    if run.watch.concluding:
        return _not_executed(TOKEN_BUDGET, wording.over_budget)
    if history is None:
        return None
    _take(run, history, ())
    if not history.calls.refuses(call):
        return None
    return _not_executed(REPEATED, wording.repeated.format(name=call.name))


def _not_executed(reason: str, text: str) -> ToolResult:
    return ToolResult(content=text, is_error=True, details={_NOT_EXECUTED: reason})


def needs_order(run: Run, batch: Sequence[Call]) -> bool:
    """Whether a batch runs one call after the other, since what comes of one decides on others."""
    return run.watch.history is not None and run.watch.history.calls.needs_order(batch)


def barred_by(results: Sequence[ToolMessage]) -> str | None:
    """The reason for which calls of a turn were not executed, told by its results."""
    found = (is_not_executed(result) for result in results)
    return next((reason for reason in found if reason is not None), None)


def is_not_executed(result: ToolMessage) -> str | None:
    """Why the call of a result was kept from running; None if it was not."""
    details = result.artifact
    return details.get(_NOT_EXECUTED) if isinstance(details, dict) else None


async def warn(state: AgentState, run: Run) -> None:
    """Tell that the turn that has just ended goes round in circles, if it is to be warned of."""
    warned = _warned(state, run)
    if warned is not None:
        await run.emit(
            Repetition(circle=warned.circle, tool_names=list(warned.names), count=warned.count)
        )


def _warned(state: AgentState, run: Run) -> Warned | None:
    follow(state, run)
    return run.watch.history.calls.warned if run.watch.history is not None else None


async def cautioned(state: AgentState, run: Run, update: Mapping[str, Any]) -> dict[str, Any]:
    """The update of a turn that begins, behind the notes that its model is to read first: what the
    turn before was warned of, and once in a run that its tokens are used up. Then no tools are left
    (K21).
    """
    warned = _warned(state, run)
    if warned is not None:
        await run.append(note(_text(warned, run.dependencies.wording), REPEATED))
    record: RunRecord = update.get("run") or state["run"]
    budget = run.settings.limits.token_budget
    if budget is None or record.get("concluding") or _tokens(state) < budget:
        return dict(update)
    run.settings = replace(run.settings, tools=())
    await run.emit(Budget(name=TOKEN_BUDGET, left=0))
    await run.append(note(run.dependencies.wording.conclude, TOKEN_BUDGET))
    return {
        **update,
        "settings": run.settings.to_json(),
        "run": changed(record, concluding=True),
    }


def _tokens(state: AgentState) -> int:
    record = state["run"]
    produced = state["messages"][record["first"] :]
    return usage_of(produced, record.get("aside"))["total_tokens"]


def _text(warned: Warned, wording: Wording) -> str:
    names = ", ".join(dict.fromkeys(warned.names))
    return wording.going_round.format(names=names, count=warned.count)
