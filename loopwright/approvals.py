"""Asking a person before tools run: all asks of a batch in one interrupt, answers matched by call.

Who asks is the hook `before_tool_call`; when the batch goes on is decided by `tool_batch`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, interrupt

from loopwright.calls import Asking, Batch, Outcome, Prepared, refused
from loopwright.events import Approval
from loopwright.state.journal import fingerprint
from loopwright.tools.arguments import ArgumentRules, InvalidArguments, validate
from loopwright.tools.results import details_of

APPROVE, EDIT, REJECT = "approve", "edit", "reject"


@dataclass(frozen=True)
class Answer:
    """What a person said to one ask; `arguments` only for an edit."""

    decision: str
    reason: str = ""
    arguments: Any = None
    hash: str | None = None


async def asked(batch: Batch, asking: Sequence[Asking]) -> dict[str, Prepared | Outcome]:
    """Interrupt the run with all asks, and give what the answers make of each call, by its id.

    Nothing of the batch has run before. An answer is `"approve"`, `"reject"`, or a mapping with
    `decision` (approve, edit, reject) and `reason`, `arguments`, `hash`. A call without an answer,
    or whose arguments are not the ones that were asked about, is rejected. Raises GraphInterrupt
    until the run is resumed.
    """
    asks = [_as_json(one) for one in asking]
    batch.journal.use()
    try:
        answers = interrupt({"asks": asks})
    except GraphInterrupt:  # only then: a run that brings the answers waits for nothing
        await batch.journal.waiting([one.call for one in asking])
        await batch.run.emit(Approval(asks=asks))
        raise
    given = answers if isinstance(answers, Mapping) else {}
    if isinstance(answers, str) and len(asking) == 1:
        given = {asking[0].call.id: answers}
    rules = batch.run.argument_rules()
    return {one.call.id: _settled(one, _answer(given.get(one.call.id)), rules) for one in asking}


def asked_about(interrupts: Sequence[Interrupt]) -> frozenset[str]:
    """The ids of the calls that these interrupts ask about; none if a tool asks in its body."""
    values = [one.value for one in interrupts if isinstance(one.value, Mapping)]
    asks = [ask for value in values for ask in value.get("asks") or () if isinstance(ask, Mapping)]
    return frozenset(str(ask.get("call_id")) for ask in asks)


def _as_json(asking: Asking) -> dict[str, Any]:
    return {
        "call_id": asking.call.id,
        "tool": asking.call.name,
        "arguments": asking.arguments,
        "hash": fingerprint(asking.arguments),
        "reason": asking.ask.reason,
        "details": details_of(asking.ask.details),
    }


def _answer(given: Any) -> Answer:
    if isinstance(given, str):
        return Answer(given)
    if isinstance(given, Mapping):
        known = {key: given[key] for key in Answer.__dataclass_fields__ if key in given}
        return Answer(**{"decision": "", **known})
    return Answer(REJECT, "no answer was given")


def _settled(asking: Asking, answer: Answer, rules: ArgumentRules) -> Prepared | Outcome:
    call, tool = asking.call, asking.tool
    if answer.hash is not None and answer.hash != fingerprint(asking.arguments):
        return refused(call, "Rejected: the answer was given for other arguments.")
    if answer.decision == APPROVE:
        return Prepared(call, tool, asking.arguments)
    if answer.decision == EDIT:
        try:
            return Prepared(call, tool, validate(tool, answer.arguments, rules))
        except InvalidArguments as error:
            return refused(call, f"The edited arguments are not valid. {error}")
    if answer.decision == REJECT:
        return refused(call, f"Rejected: {answer.reason}" if answer.reason else "Rejected.")
    return refused(call, f"Rejected: {answer.decision!r} is no answer.")
