"""The course's words (S0): its messages, chunks, events and results as frozen values.

What a run makes of them is in `loop`; which lists of messages are valid in `transcript`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol

from loopwright.signals import AbortSignal
from loopwright.text import joined


@dataclass(frozen=True)
class TextBlock:
    """A piece of an answer's text."""

    text: str
    type: ClassVar[str] = "text"


@dataclass(frozen=True)
class ToolCall:
    """A call of an answer: `arguments` is a JSON object, read-only once a run has taken it."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    type: ClassVar[str] = "toolCall"


Block = TextBlock | ToolCall


@dataclass(frozen=True)
class UserMessage:
    """What a user says."""

    id: str
    content: str
    role: ClassVar[str] = "user"


@dataclass(frozen=True)
class AssistantMessage:
    """A whole answer."""

    id: str
    content: Sequence[Block]
    role: ClassVar[str] = "assistant"

    def __post_init__(self) -> None:
        if isinstance(self.content, list):
            object.__setattr__(self, "content", tuple(self.content))


@dataclass(frozen=True)
class ToolResultMessage:
    """The result of one call: compact JSON with sorted keys, or `{"error": {...}}`."""

    id: str
    tool_call_id: str
    tool_name: str
    content: str
    is_error: bool = False
    role: ClassVar[str] = "toolResult"


Message = UserMessage | AssistantMessage | ToolResultMessage


@dataclass(frozen=True)
class TextDelta:
    """A streamed piece of text."""

    request_id: str
    delta: str
    type: ClassVar[str] = "textDelta"


@dataclass(frozen=True)
class ToolCallChunk:
    """A call, streamed whole."""

    request_id: str
    tool_call: ToolCall
    type: ClassVar[str] = "toolCall"


Chunk = TextDelta | ToolCallChunk


@dataclass(frozen=True)
class Usage:
    """The tokens of one answer."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class ModelRequest:
    """What a model is asked: the whole transcript as it is now, and the id to answer with."""

    id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class ModelResponse:
    """The final answer, behind all chunks. `stop_reason` is `stop` or `toolCall`."""

    id: str
    request_id: str
    message: AssistantMessage
    stop_reason: str
    usage: Usage


class ModelStream(Protocol):
    """One answer: its chunks, then `await stream.result()`."""

    def __aiter__(self) -> AsyncIterator[Chunk]: ...

    async def result(self) -> ModelResponse:
        """The final answer; asked for when the chunks are through."""
        ...


class Model(Protocol):
    """What a run needs of a model."""

    def stream(self, request: ModelRequest, signal: AbortSignal) -> ModelStream:
        """Open one answer."""
        ...


ErrorCode = Literal[
    "INVALID_TRANSCRIPT",
    "MODEL_PROTOCOL_ERROR",
    "MODEL_STREAM_FAILED",
    "TOOL_EXECUTION_FAILED",
    "SIGNAL_ACCESS_FAILED",
    "AGENT_RUNTIME_FAILED",
]


@dataclass(frozen=True)
class TranscriptFault:
    """What is wrong with a starting transcript, and at which message."""

    code: str
    message_index: int
    message: str


@dataclass(frozen=True)
class RunError:
    """Why a run failed. `faults` are those of a transcript, for INVALID_TRANSCRIPT."""

    code: ErrorCode
    message: str
    faults: tuple[TranscriptFault, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a run ended: completed with `final_text`, cancelled with `reason`, maxSteps with
    `max_steps`, failed with `error`. `messages` is the transcript: complete messages only.
    """

    status: Literal["completed", "cancelled", "maxSteps", "failed"]
    messages: tuple[Message, ...]
    final_text: str | None = None
    reason: str | None = None
    max_steps: int | None = None
    error: RunError | None = None


EventType = Literal[
    "message.accepted", "model.chunk", "tool.started", "tool.finished", "run.finished"
]


@dataclass(frozen=True)
class AgentEvent:
    """One event: `sequence` counts from 0 without gaps over all types.

    The payload has one key: `message` (accepted, finished), `chunk`, `toolCall` or `result`.
    """

    type: EventType
    sequence: int
    payload: Mapping[str, Any] = field(default_factory=dict)


def text_from_assistant(message: AssistantMessage) -> str:
    """All texts of an answer as one."""
    return joined("".join(block.text for block in message.content if isinstance(block, TextBlock)))


def frozen(value: Any) -> Any:
    """A copy of a JSON value that nobody can change: mappings are read-only, arrays are tuples."""
    if isinstance(value, dict):
        return MappingProxyType({key: frozen(item) for key, item in value.items()})
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """The JSON value that `frozen` made read-only, as a fresh copy."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def to_json(value: Any) -> Any:
    """Any of these values in the JSON form of the course (camelCase, with `role` and `type`)."""
    if is_dataclass(value) and not isinstance(value, type):
        given = {_camel(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
        tags = {name: getattr(value, name) for name in ("role", "type") if hasattr(value, name)}
        return {**tags, **{key: item for key, item in given.items() if item is not None}}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)
