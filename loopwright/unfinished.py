"""Answers that say nothing or were cut off: what is shown of them, and how the run goes on.

What a provider's word means is known in `providers.finish`. A decision is made here once, by
`kind_of`; the nodes behind it act on its kind, and the edges look it up.
"""

from typing import Literal

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.limits import reached
from loopwright.providers.finish import is_filtered
from loopwright.runs import Run
from loopwright.state.messages import ABORTED, ERROR, LENGTH, calls, stop_reason
from loopwright.state.notes import note, rule_of
from loopwright.state.schema import AgentState

EMPTY, CUT = "empty_answer", "cut_answer"
"""The rules whose notes ask for an answer, and for the rest of one."""

OUTPUT_LIMIT = "output_limit"
"""The reason of a run whose model never got a call out whole."""

AnswerKind = Literal["tools", "satisfied", "hard_stop", "empty", "cut"]


def kind_of(state: AgentState, run: Run, message: AIMessage) -> AnswerKind:
    """What an answer leads to, before it is in the ledger.

    `cut` and `empty` ask the model once more, as long as the settings and limits let them: the rest
    of a text (`limits.length_rounds` times in a row), an answer in place of an empty one (once in
    a run). An answer that a provider withheld is not asked for again.
    """
    reason = stop_reason(message)
    if reason in (ERROR, ABORTED):
        return "hard_stop"
    if calls(message):
        return "tools"
    if run.settings.output is not None:  # what it lacks is said by its form (`judging`)
        return "satisfied"
    if reason == LENGTH and _may_continue(state, run):
        return "cut"
    return "empty" if _is_empty(message) and _may_nudge(state, run, reason) else "satisfied"


def visible(run: Run, message: AIMessage, kind: AnswerKind) -> AIMessage:
    """The answer as it is stored: one that ends the run without a word says so in its text."""
    kept = run.settings.empty_answers == "keep" or run.settings.output is not None
    if kind != "satisfied" or kept or not _is_empty(message):
        return message
    reason = stop_reason(message)
    text = run.dependencies.wording.no_answer
    if is_filtered(reason):
        text = run.dependencies.wording.withheld.format(word=reason)
    elif reason == LENGTH:
        text = run.dependencies.wording.no_room
    blocks = message.content if isinstance(message.content, list) else []
    content = [*blocks, {"type": "text", "text": text}] if blocks else text
    return message.model_copy(update={"content": content})


async def ask_again(run: Run, kind: str) -> None:
    """Append the note that asks for the rest of an answer, or for one at all."""
    wording = run.dependencies.wording
    if kind == "cut":
        await run.append(note(wording.go_on, CUT))
    elif kind == "empty":
        await run.append(note(wording.nudge, EMPTY))


def out_of_room(state: AgentState, run: Run) -> str | None:
    """The reason to end a run whose calls were cut off too often in a row; None to go on."""
    rounds = run.settings.limits.length_rounds
    if rounds is None or not _cut_in_a_row([*state["messages"], *run.appended], rounds + 1):
        return None
    return OUTPUT_LIMIT


def _is_empty(message: AIMessage) -> bool:
    return not calls(message) and not str(message.text).strip()


def _may_continue(state: AgentState, run: Run) -> bool:
    rounds = run.settings.limits.length_rounds
    if rounds is None or reached(state, run):
        return False
    return rounds > 0 and not _cut_in_a_row(state["messages"], rounds)


def _may_nudge(state: AgentState, run: Run, reason: str) -> bool:
    if run.settings.empty_answers != "nudge" or is_filtered(reason) or reason == LENGTH:
        return False
    produced = state["messages"][state["run"]["first"] :]
    return not reached(state, run) and not any(rule_of(m) == EMPTY for m in produced)


def _cut_in_a_row(messages: list[AnyMessage], times: int) -> bool:
    """Whether so many last answers were all cut off at the output limit."""
    left = times
    for message in reversed(messages):
        if left == 0 or message.type == "human":
            break
        if isinstance(message, AIMessage):
            if stop_reason(message) != LENGTH:
                break
            left -= 1
    return left == 0
