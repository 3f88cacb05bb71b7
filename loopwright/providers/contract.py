"""The one interface between the loop and any model (S1-18): a request goes in, stream events come
out; `id`, `stream`, `complete`, `validate_auth`, and the loop knows nothing else.

How a server is spoken to lives in the providers; what a turn makes of it in the `model` node.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.clock import Clock, SystemClock
from loopwright.errors import ModelError, RequestPart
from loopwright.events import UpdateKind
from loopwright.forms import OutputForm
from loopwright.settings import ForeignThinking
from loopwright.signals import AbortSignal
from loopwright.state.messages import Call, error_of
from loopwright.tools.contract import Tool

SchemaSupport = Literal["native", "untested", "none"]
"""Whether a provider can hold an answer to a JSON schema: it is known to, it can be asked to, or
there is no way to ask."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request. `messages` are the view after `convert_to_llm`, without a system message.

    Making them fit a provider's wire (pairing, unknown fields, images) is the provider's job
    (`providers.wire`). The lists are the provider's own to change.
    """

    model: str
    system_prompt: str
    messages: list[AnyMessage]
    tools: Sequence[Tool] = ()
    thinking_level: str = "off"
    api_key: str | None = None
    id: str = ""
    """`request-001` and so on: one for each turn of the run (S0-09); empty outside of a turn."""

    output: OutputForm | None = None
    """The form that the provider is to hold the answer to; None leaves the answer free."""

    patience: float | None = None
    """Seconds without any piece after which the provider ends the answer with a failure of kind
    `timeout`, by `clock`; None waits as long as the connection holds."""

    clock: Clock = field(default_factory=SystemClock)
    signal: AbortSignal = field(default_factory=AbortSignal)
    session: str = ""
    """What requests with a common beginning share, so that a server finds its cache: the thread's
    id (S1-21). Empty: they share nothing."""

    foreign_thinking: ForeignThinking = "drop"
    """What becomes of thinking that another producer has made (S1-20, K23)."""

    withheld: frozenset[RequestPart] = frozenset()
    """What is left out of this request, because the server has refused it. The answer says so in
    `response_metadata["withheld"]`; later requests leave out the same parts of what stands before
    such an answer."""


@dataclass(frozen=True, kw_only=True)
class StreamStart:
    """The answer begins. Optional; pieces that come before it are dropped (S2)."""

    message_id: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamPiece:
    """A piece of block `index`; a tool call's start carries id and name as far as known.

    `call` is the whole call in a `tool_call_end`, from a provider that knows it by then. A strict
    run checks its arguments before the piece is told.
    """

    kind: UpdateKind
    index: int
    delta: str = ""
    tool_call_id: str | None = None
    tool_name: str | None = None
    call: Call | None = None
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamEnd:
    """The answer is over: always the last event. `message` is complete and authoritative.

    `message` is an AIMessage: content as text or blocks, `tool_calls` whose arguments were complete
    JSON objects, `invalid_tool_calls` for every other call (with its raw text and an `error`),
    `usage_metadata`, and `response_metadata` with at least `stop_reason` (see `state.messages`) and
    the producer, `provider`, `api` and `model` (S1-20); a failed answer has stop_reason `error`
    plus `error_message` and `error_kind`, a cancelled one `aborted`.

    `failure` is what went wrong, as an error: with it the run sends the request again, if the kind
    allows it. A failed answer without it is final.
    """

    message: AIMessage
    failure: ModelError | None = None
    request_id: str | None = None


StreamEvent = StreamStart | StreamPiece | StreamEnd
"""`request_id` names the request that is answered; None is the one that was given to `stream`. A
provider that takes its answers from somewhere else than one stream per request says it."""


class Provider(Protocol):
    """Something that answers model requests.

    A provider that looks at `request.signal` ends an aborted answer with a StreamEnd of stop_reason
    `aborted`. A server's failure is a StreamEnd of stop_reason `error` with its `failure`; only
    ContextOverflowError is raised, because the loop compacts on it. Any other exception is a fault
    of the run. Nothing is sent twice here: the run sends requests again.

    Whoever inherits from it writes `id`, `stream` and `context_window`; the rest is built on them.
    """

    id: str
    """Name of the provider, stored with every message it makes."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request and give the answer's events in order."""
        ...

    def context_window(self, model: str) -> int | None:
        """Tokens that fit the model, None if unknown."""
        ...

    def schema_support(self, model: str) -> SchemaSupport:
        """Whether `ModelRequest.output` has an effect."""
        return "none"

    async def complete(self, request: ModelRequest) -> AIMessage:
        """The message of the answer's StreamEnd: `stream`, for who does not want to watch.

        Raises what `stream` raises, and ModelError (protocol) for a stream without an end.
        """
        return (await self._end(request)).message

    async def validate_auth(self, api_key: str | None = None) -> None:
        """Return if the server takes the key; None stands for the configured one.

        Raises ModelError: of kind `auth` if the key is refused, of another kind if the server could
        not be asked. A provider that knows nothing cheaper asks for an answer.
        """
        hello = ModelRequest(
            model=self.id, system_prompt="", messages=[HumanMessage("Hi")], api_key=api_key
        )
        end = await self._end(hello)
        error = error_of(end.message)
        if end.failure is not None:
            raise end.failure
        if error is not None:
            raise ModelError(error["message"])

    async def _end(self, request: ModelRequest) -> StreamEnd:
        end = None
        async for event in self.stream(request):
            if isinstance(event, StreamEnd):
                end = event
        if end is None:
            raise ModelError(
                f"the stream of provider {self.id!r} ended without an answer", kind="protocol"
            )
        return end
