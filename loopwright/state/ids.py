"""The ids that a ledger has given out, so that no message and no call gets one twice.

How a call gets an id of its own is in `call_ids`.
"""

from dataclasses import dataclass

from langchain_core.messages import AnyMessage

from loopwright.state.messages import calls


@dataclass
class Ids:
    """The message and call ids of a ledger: built once per run, then kept up to date (O(new))."""

    messages: set[str]
    calls: set[str]

    @classmethod
    def of(cls, ledger: list[AnyMessage]) -> "Ids":
        """All ids of a ledger."""
        ids = cls(set(), set())
        for message in ledger:
            ids.note(message)
        return ids

    def note(self, message: AnyMessage) -> None:
        """Take the ids of one message."""
        self.messages.add(str(message.id))
        self.calls.update(call.id for call in calls(message))
