"""The invariants of a ledger, as named faults: unique ids, and every call answered at its place.

How a ledger with faults is mended lives in `repair`; what a provider needs beyond this in `wire`.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import BaseMessage, ToolMessage

from loopwright.state.messages import Call, calls

FaultKind = Literal[
    "missing_message_id",
    "duplicate_message_id",
    "blank_call_id",
    "duplicate_call_id",
    "unanswered_call",
    "misplaced_result",
    "duplicate_result",
    "orphan_result",
    "wrong_result_name",
    "result_before_call",
]


@dataclass(frozen=True)
class Fault:
    """One broken invariant: `at` is the index of the message that shows it.

    `id` names what is broken: a message id for the first two kinds, a call id for the others.
    """

    kind: FaultKind
    at: int
    id: str


class Checker:
    """Checks a ledger message by message: O(new messages), whatever the ledger's length.

    Contract: `add` the messages in the ledger's order; each answer holds only the faults that the
    new message shows. An open tail is no fault yet, so ask `close` where the ledger must be whole.
    """

    def __init__(self, messages: Iterable[BaseMessage] = ()) -> None:
        self._length = 0
        self._message_ids: set[str] = set()
        self._call_ids: set[str] = set()
        self._answered: set[str] = set()
        self._open: deque[Call] = deque()
        for message in messages:
            self.add(message)

    @property
    def open_calls(self) -> list[Call]:
        """The calls of the last message that still wait for their result, in order."""
        return list(self._open)

    def add(self, message: BaseMessage) -> list[Fault]:
        """Take the next message of the ledger; gives the faults that it shows."""
        found = self._check_id(message)
        if isinstance(message, ToolMessage):
            found += self._check_result(message)
        else:
            found += self.close()
            found += self._check_calls(message)
        self._length += 1
        return found

    def close(self) -> list[Fault]:
        """The calls that nothing may answer any more, because the ledger ends or goes on here."""
        unanswered = [self._fault("unanswered_call", call.id) for call in self._open]
        self._open.clear()
        return unanswered

    def _fault(self, kind: FaultKind, id: str) -> Fault:
        return Fault(kind, self._length, id)

    def _check_id(self, message: BaseMessage) -> list[Fault]:
        if not message.id:
            return [self._fault("missing_message_id", "")]
        if message.id in self._message_ids:
            return [self._fault("duplicate_message_id", message.id)]
        self._message_ids.add(message.id)
        return []

    def _check_calls(self, message: BaseMessage) -> list[Fault]:
        found: list[Fault] = []
        for call in calls(message):
            if not call.id.strip():
                found.append(self._fault("blank_call_id", call.id))
            elif call.id in self._call_ids:
                found.append(self._fault("duplicate_call_id", call.id))
            self._call_ids.add(call.id)
            self._open.append(call)
        return found

    def _check_result(self, result: ToolMessage) -> list[Fault]:
        call = next((call for call in self._open if call.id == result.tool_call_id), None)
        if call is None:
            return [self._fault(self._unexpected(result.tool_call_id), result.tool_call_id)]
        in_order = call is self._open[0]
        self._open.remove(call)
        self._answered.add(call.id)
        found = [] if in_order else [self._fault("misplaced_result", call.id)]
        if not names_agree(call, result):
            found.append(self._fault("wrong_result_name", call.id))
        return found

    def _unexpected(self, call_id: str) -> FaultKind:
        """What a result is that no waiting call asked for. One before its call is an orphan."""
        if call_id in self._answered:
            return "duplicate_result"
        return "misplaced_result" if call_id in self._call_ids else "orphan_result"


def names_agree(call: Call, result: ToolMessage) -> bool:
    """Whether a result names the tool of its call; one that names no tool at all agrees."""
    return result.name is None or result.name == call.name


def faults(messages: Iterable[BaseMessage], *, open_tail: bool = False) -> list[Fault]:
    """Everything that keeps a list of messages from being a valid ledger (S1-04), in order.

    Valid means: every message has an id of its own and every call an id that no other call has;
    directly behind an assistant message stand the results of its calls, one for each, in the order
    of declaration and under the call's name; there are no other results. `open_tail` allows the
    last assistant message to have calls without results: that is how a run is stored between a
    request and the end of its tool batch.
    """
    checker = Checker()
    found = [fault for message in messages for fault in checker.add(message)]
    return found if open_tail else found + checker.close()
