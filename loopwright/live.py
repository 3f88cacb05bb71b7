"""The public state of an agent while it runs: what an interface shows between two events.

It only follows events; the truth is the ledger in the checkpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.utils.json import parse_partial_json

from loopwright.events import (
    AnyEvent,
    Fallback,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from loopwright.state.messages import error_of


@dataclass
class LiveState:
    """Updated before listeners hear an event (S2-08).

    `messages` is the transcript: a message joins it when it is complete. Editing the list while no
    run goes on rewrites the thread when the next run begins; during a run the edit shows here and
    in the next run, not in this run's requests.
    """

    messages: list[AnyMessage] = field(default_factory=list)
    is_streaming: bool = False
    """True from the claim of a run until its last listener is done."""

    pending_tool_calls: frozenset[str] = frozenset()
    """Ids of the calls that were started and have no result yet."""

    error_message: str | None = None
    """Text of the last failed answer; cleared when a run begins."""

    _stored: list[AnyMessage] = field(default_factory=list)
    _streaming: AnyMessage | None = None
    _blocks: dict[int, "_Block"] = field(default_factory=dict)

    @property
    def streaming_message(self) -> AnyMessage | None:
        """The message that is coming in, whatever its role, as far as it is known."""
        if not isinstance(self._streaming, AIMessage) or not self._blocks:
            return self._streaming
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return self._streaming.model_copy(
            update={
                "content": [block.content() for block in blocks if block.kind != "tool_call"],
                "tool_calls": [block.call() for block in blocks if block.kind == "tool_call"],
            }
        )

    @property
    def edited(self) -> bool:
        """Whether someone changed the list since it was last in step with the thread."""
        return len(self.messages) != len(self._stored) or any(
            shown is not stored for shown, stored in zip(self.messages, self._stored, strict=True)
        )

    def claim(self) -> None:
        """A run has been claimed."""
        self.is_streaming = True
        self.error_message = None

    def settle(self) -> None:
        """The run is over, whatever became of it."""
        self.is_streaming = False
        self.pending_tool_calls = frozenset()
        self._streaming = None

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """Show the thread's transcript as it is stored."""
        self._stored = list(messages)
        self.messages[:] = messages

    def apply(self, event: AnyEvent) -> None:
        """Follow one event."""
        match event:
            case MessageStart():
                self._streaming, self._blocks = event.message, {}
            case MessageUpdate():
                self._blocks.setdefault(event.index, _Block(event)).add(event)
            case Retry() | Fallback():
                self._streaming, self._blocks = None, {}
            case MessageEnd():
                self._streaming, self._blocks = None, {}
                self.messages.append(event.message)
                self._stored.append(event.message)
            case ToolExecutionStart():
                self.pending_tool_calls |= {event.tool_call_id}
            case ToolExecutionEnd():
                self.pending_tool_calls -= {event.tool_call_id}
            case TurnEnd():
                error = error_of(event.message)
                self.error_message = error["message"] if error else self.error_message


class _Block:
    """One block of the message that is coming in."""

    def __init__(self, event: MessageUpdate) -> None:
        self.kind = event.update.rpartition("_")[0]
        self.text = ""
        self.id, self.name = event.tool_call_id, event.tool_name

    def add(self, event: MessageUpdate) -> None:
        self.text += event.delta
        self.id, self.name = event.tool_call_id or self.id, event.tool_name or self.name

    def content(self) -> dict[str, Any]:
        if self.kind == "thinking":
            return {"type": "reasoning", "reasoning": self.text}
        return {"type": "text", "text": self.text}

    def call(self) -> dict[str, Any]:
        """The call with as much of its arguments as can be read so far."""
        try:
            arguments = parse_partial_json(self.text) if self.text else {}
        except ValueError:
            arguments = {}
        known = arguments if isinstance(arguments, dict) else {}
        return {"type": "tool_call", "id": self.id, "name": self.name or "", "args": known}
