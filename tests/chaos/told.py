"""What the processes of a round tell the one that kills them: plain values that fit a pipe.

What must hold for them is said in `invariants`.
"""

from dataclasses import dataclass, field, replace
from typing import Self

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from loopwright.events import AnyEvent, MessageEnd, ToolExecutionEnd
from loopwright.failpoints import Place
from loopwright.queues import Queue
from loopwright.state.messages import calls


@dataclass(frozen=True)
class Line:
    """A message of a transcript, as far as it is compared."""

    id: str
    type: str
    text: str
    calls: tuple[str, ...] = ()
    """The ids of its tool calls."""

    answers: str | None = None
    """The id of the call whose result it is."""

    @classmethod
    def of(cls, message: AnyMessage | BaseMessage) -> Self:
        """The line of a message."""
        answers = message.tool_call_id if isinstance(message, ToolMessage) else None
        ids = tuple(call.id for call in calls(message))
        return cls(str(message.id), message.type, message.text, ids, answers)


@dataclass(frozen=True)
class Told:
    """An event that a run has told on its stream."""

    run: str
    sequence: int
    type: str
    line: Line | None = None
    """The message of a `message_end`."""

    call: str | None = None
    """Of a `tool_execution_end`: the call's id, the text of its result, and its tool."""

    text: str | None = None
    tool: str | None = None

    @classmethod
    def of(cls, event: AnyEvent) -> Self:
        """What is kept of an event."""
        told = cls(event.run_id, event.sequence, event.type)
        if isinstance(event, MessageEnd):
            return replace(told, line=Line.of(event.message))
        if isinstance(event, ToolExecutionEnd):
            text, tool = str(event.content), event.tool_name
            return replace(told, call=event.tool_call_id, text=text, tool=tool)
        return told


@dataclass(frozen=True)
class Found:
    """A thread as a process that has just begun finds it in the file."""

    lines: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    """What is wrong with the transcript, calls of its last answer without a result aside."""

    open_calls: tuple[str, ...] = ()
    run: tuple[str, str] | None = None
    """The id and the status of the run that was stored last."""

    delivered: tuple[str, ...] = ()
    """The texts of the queues' entries that the stored cursor counts as delivered."""

    waiting: tuple[str, ...] = ()
    """The texts of those that it does not."""

    finished: dict[str, str] = field(default_factory=dict)
    """The journal's results by call id."""

    damage: tuple[str, ...] = ()
    """What `loopwright doctor` finds wrong with the file."""

    leases: tuple[str, ...] = ()
    """Who holds the thread."""


@dataclass(frozen=True)
class Queued:
    """A message that another process has queued; its `append` had returned."""

    queue: Queue
    text: str


@dataclass(frozen=True)
class Reached:
    """The process is at the place where it is to die, and does nothing more."""

    place: Place


@dataclass(frozen=True)
class Entered:
    """How a run was begun in the end: where nothing could be carried on, with a prompt."""

    way: str


@dataclass(frozen=True)
class Busy:
    """The thread was refused, because another process runs it."""


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: str
    reason: str


@dataclass(frozen=True)
class Failed:
    """The process ended with an exception of its own."""

    traceback: str
