"""What a run tells while it goes on: one union of frozen events, and their JSON form.

The order in which a run emits them is decided by the nodes; numbering and delivery by `emitter`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import AnyMessage, ToolMessage
from pydantic import Field, TypeAdapter

from loopwright.errors import ModelErrorKind

RunStatus = Literal["completed", "stopped", "limit", "cancelled", "failed", "interrupted"]
UpdateKind = Literal[
    "text_start",
    "text_delta",
    "text_end",
    "thinking_start",
    "thinking_delta",
    "thinking_end",
    "tool_call_start",
    "tool_call_delta",
    "tool_call_end",
]


@dataclass(frozen=True, kw_only=True)
class Event:
    """`run_id` and `sequence` are filled in when the event is emitted: from 0, without gaps."""

    run_id: str = ""
    sequence: int = -1

    def numbered(self, run_id: str, sequence: int) -> Self:
        """The same event as number `sequence` of a run; `dataclasses.replace` takes four times
        as long, and an answer is told in many events."""
        event = object.__new__(type(self))
        event.__dict__.update(self.__dict__, run_id=run_id, sequence=sequence)
        return event


@dataclass(frozen=True, kw_only=True)
class AgentStart(Event):
    """A run begins. `resumed_from` is the id of the run that it carries on, if there is one."""

    thread: str
    resumed_from: str | None = None
    type: Literal["agent_start"] = "agent_start"


@dataclass(frozen=True, kw_only=True)
class AgentEnd(Event):
    """A run is over; always its last event.

    `messages` is what this run produced (prompts, answers, results, delivered queue messages),
    never older ones; after a fault only the synthetic failure message (S2). `reason` names the
    rule that ended the run. `error` is `{"kind", "message"}` of a failed run. `interrupts` holds
    what an interrupted run waits for. `output` is the JSON of the answer of a run that had to give
    it in a form, None if it did not.
    """

    thread: str
    status: RunStatus
    reason: str
    messages: list[AnyMessage]
    usage: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 0
    error: dict[str, str] | None = None
    interrupts: list[Any] = field(default_factory=list)
    output: Any = None
    type: Literal["agent_end"] = "agent_end"


@dataclass(frozen=True, kw_only=True)
class TurnStart(Event):
    """A turn begins: one model request and its tool batch. `turn` counts from 1 within the run."""

    turn: int
    type: Literal["turn_start"] = "turn_start"


@dataclass(frozen=True, kw_only=True)
class TurnEnd(Event):
    """A turn is over: once per assistant message, results in the order of the calls."""

    message: AnyMessage
    tool_results: list[ToolMessage]
    type: Literal["turn_end"] = "turn_end"


@dataclass(frozen=True, kw_only=True)
class MessageStart(Event):
    """A message begins; of an assistant message only identity and model are known yet."""

    message: AnyMessage
    type: Literal["message_start"] = "message_start"


@dataclass(frozen=True, kw_only=True)
class MessageUpdate(Event):
    """A piece of a streaming assistant message: `delta` belongs to block `index`.

    `tool_call_start` carries the call's id and name as far as they are known.
    """

    message_id: str
    update: UpdateKind
    index: int
    delta: str = ""
    tool_call_id: str | None = None
    tool_name: str | None = None
    type: Literal["message_update"] = "message_update"


@dataclass(frozen=True, kw_only=True)
class MessageEnd(Event):
    """A message is complete and part of the transcript."""

    message: AnyMessage
    type: Literal["message_end"] = "message_end"


@dataclass(frozen=True, kw_only=True)
class ToolExecutionStart(Event):
    """A tool call is about to be prepared; `arguments` as the model gave them."""

    tool_call_id: str
    tool_name: str
    arguments: Any
    type: Literal["tool_execution_start"] = "tool_execution_start"


@dataclass(frozen=True, kw_only=True)
class ToolExecutionUpdate(Event):
    """A running tool reports progress: `partial` is `{"content", "details"}` of its own making."""

    tool_call_id: str
    tool_name: str
    arguments: Any
    partial: Any
    type: Literal["tool_execution_update"] = "tool_execution_update"


@dataclass(frozen=True, kw_only=True)
class ToolExecutionEnd(Event):
    """A tool call has its result: in order of completion, before the result's message."""

    tool_call_id: str
    tool_name: str
    content: Any
    is_error: bool
    details: Any = None
    terminate: bool | None = None
    type: Literal["tool_execution_end"] = "tool_execution_end"


@dataclass(frozen=True, kw_only=True)
class QueueUpdate(Event):
    """Messages were taken from a queue: `delivered` now, `waiting` still in it."""

    queue: Literal["steering", "follow_up"]
    delivered: int
    waiting: int
    type: Literal["queue_update"] = "queue_update"


@dataclass(frozen=True, kw_only=True)
class Retry(Event):
    """A request failed and is sent again after `wait` seconds.

    `attempt` counts from 1 the times that it was sent, `kind` is the failure's. What was told of
    the message `message_id` is void: nothing of it is kept. None: no message had begun.
    """

    attempt: int
    kind: ModelErrorKind
    reason: str
    wait: float
    message_id: str | None = None
    type: Literal["retry"] = "retry"


@dataclass(frozen=True, kw_only=True)
class Fallback(Event):
    """A model has failed, and the next one of `settings.fallback` is asked for the rest of the run.

    `message_id` is void as in `Retry`.
    """

    from_model: str
    to_model: str
    reason: str
    message_id: str | None = None
    type: Literal["fallback"] = "fallback"


@dataclass(frozen=True, kw_only=True)
class Compaction(Event):
    """The older part of the context was replaced by a summary for the model; nothing is deleted."""

    tokens_before: int
    tokens_after: int
    type: Literal["compaction"] = "compaction"


@dataclass(frozen=True, kw_only=True)
class Budget(Event):
    """A budget was drawn from or ran out: `name` says which, `left` how much is left."""

    name: str
    left: float
    type: Literal["budget"] = "budget"


@dataclass(frozen=True, kw_only=True)
class Repetition(Event):
    """The run goes round in circles and is warned; if it goes on like that, it is ended.

    `circle` says how: the same call, a cycle of calls or turns without anything new, each with
    results that do not change; one failure again and again; or one call very often.
    """

    circle: Literal["same_call", "cycle", "same_error", "no_progress", "long_run"]
    tool_names: list[str]
    count: int
    type: Literal["repetition"] = "repetition"


@dataclass(frozen=True, kw_only=True)
class Repair(Event):
    """A loaded transcript was mended; the counts say what was done."""

    report: dict[str, int]
    type: Literal["repair"] = "repair"


@dataclass(frozen=True, kw_only=True)
class Approval(Event):
    """A tool batch waits for answers: `asks` in source order."""

    asks: list[Any]
    type: Literal["approval"] = "approval"


AnyEvent = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | QueueUpdate
    | Retry
    | Fallback
    | Compaction
    | Budget
    | Repetition
    | Repair
    | Approval
)


@cache
def _adapter() -> TypeAdapter[AnyEvent]:
    return TypeAdapter(Annotated[AnyEvent, Field(discriminator="type")])


def to_json(event: AnyEvent) -> dict[str, Any]:
    """The event as plain JSON values; `from_json` gives an equal event back."""
    dumped: dict[str, Any] = _adapter().dump_python(event, mode="json")
    return dumped


def from_json(data: dict[str, Any]) -> AnyEvent:
    """The event of its JSON form. Raises pydantic's ValidationError for what is none."""
    return _adapter().validate_python(data)
