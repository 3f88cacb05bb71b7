"""Whether a turn has given the final answer that its run must end with, and what follows if not.

Pure but for the check itself; the check is in `structured`, the form in `forms`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, ToolMessage

from loopwright.providers.finish import why_cut
from loopwright.runs import Run, changed
from loopwright.state.messages import LENGTH, calls, stop_reason
from loopwright.state.notes import note
from loopwright.state.schema import AgentState, Answered, Decision, RunRecord
from loopwright.structured import ACCEPTED, Misfit

INVALID_OUTPUT, REFUSED_OUTPUT = "invalid_output", "refused_output"
"""The reasons of runs that end without the answer they had to give, and the rule of the notes."""


@dataclass(frozen=True)
class Verdict:
    """What a turn was: work before the answer, a valid answer, an invalid one, or a refusal.

    `text` says what is wrong. `is_told` is true if the model reads it in a result anyway.
    """

    kind: Literal["working", "valid", "invalid", "refused"]
    value: Any = None
    text: str = ""
    is_told: bool = False


def judged(run: Run, message: AIMessage, results: Sequence[ToolMessage]) -> Verdict:
    """The verdict on a turn of a run that has to answer in a form."""
    form, wording = run.settings.output, run.dependencies.wording
    assert form is not None
    if form.mode == "tool" and (found := _given(form.name, results)) is not None:
        return found
    if calls(message):
        return Verdict("working")
    if (refusal := _refusal(message)) is not None:
        return Verdict("refused", text=refusal)
    if form.mode == "tool":
        return Verdict("invalid", text=wording.missing_output.format(name=form.name))
    if stop_reason(message) == LENGTH:
        return Verdict("invalid", text=wording.cut_output)
    try:
        return Verdict("valid", run.output().read(str(message.text), run.argument_rules()))
    except Misfit as fault:
        return Verdict("invalid", text=wording.invalid_output.format(faults=fault))


def _given(name: str, results: Sequence[ToolMessage]) -> Verdict | None:
    """What the tool for the answer made of its calls: the first valid one counts; None: no call."""
    answers = [result for result in results if result.name == name]
    taken = next((result for result in answers if result.status != "error"), None)
    if taken is not None:
        return Verdict("valid", taken.artifact[ACCEPTED])
    return Verdict("invalid", text=answers[-1].text, is_told=True) if answers else None


def _refusal(message: AIMessage) -> str | None:
    """Why the model or its provider would not answer; None if it did."""
    refusal = message.additional_kwargs.get("refusal")
    blocks = message.content if isinstance(message.content, list) else []
    said = [b.get("refusal") for b in blocks if isinstance(b, dict) and b.get("type") == "refusal"]
    if refusal or said:
        return f"the model refused to answer: {refusal or ' '.join(map(str, said))}"
    reason = stop_reason(message)
    return why_cut(reason) if reason != LENGTH else None


def concluded(
    state: AgentState, run: Run, message: AIMessage, results: Sequence[ToolMessage]
) -> tuple[dict[str, RunRecord], Decision | None]:
    """The channels behind a turn, and the decision that the answer's form makes; None leaves it to
    the other rules. An invalid answer leads to another turn until the repairs are used up.
    """
    record, form = state["run"], run.settings.output
    if form is None:
        return {}, None
    verdict = judged(run, message, results)
    if verdict.kind == "valid":
        answered = Answered(value=verdict.value)
        return {"run": changed(record, answered=answered, repairs=0)}, Decision(kind="satisfied")
    if verdict.kind == "working":
        return {}, None
    repairs, error = record.get("repairs", 0), {"kind": INVALID_OUTPUT, "message": verdict.text}
    if verdict.kind == "refused":
        error = {"kind": REFUSED_OUTPUT, "message": verdict.text}
        return {}, Decision(kind="stopped", reason=REFUSED_OUTPUT, error=error)
    if repairs >= form.repairs:
        return {}, Decision(kind="stopped", reason=INVALID_OUTPUT, error=error)
    update = {"run": changed(record, repairs=repairs + 1)}
    if verdict.is_told:
        return update, Decision(kind="again")
    return update, Decision(kind="again", reason=INVALID_OUTPUT, error=error)


async def correct(decision: Decision, run: Run) -> None:
    """Tell the model in a note what is wrong with its answer, if no result has told it."""
    if decision.get("reason") == INVALID_OUTPUT and decision["kind"] == "again":
        await run.append(note(decision["error"]["message"], INVALID_OUTPUT))
