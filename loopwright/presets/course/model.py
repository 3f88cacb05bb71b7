"""A course model as a provider of the core: requests and answers in each other's words.

Whether an answer keeps the protocol is checked by the core (`providers.protocol`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.errors import ProtocolError
from loopwright.presets.course.protocol import (
    AssistantMessage,
    Block,
    Chunk,
    Message,
    Model,
    ModelRequest,
    ModelResponse,
    TextBlock,
    TextDelta,
    ToolCall,
    ToolCallChunk,
    ToolResultMessage,
    Usage,
    frozen,
)
from loopwright.presets.course.transcript import core_answer, thawed
from loopwright.providers.contract import ModelRequest as CoreRequest
from loopwright.providers.contract import Provider, StreamEnd, StreamEvent, StreamPiece, StreamStart
from loopwright.state.messages import ERROR, STOP, TOOL_USE, Call, failure
from loopwright.tools.arguments import DEFAULT_RULES, violations
from loopwright.validation import LARGEST_WHOLE

STREAM = "stream"
"""The kind of a failed answer whose model raised."""

_REASONS = {"stop": STOP, "toolCall": TOOL_USE}


class CourseProvider(Provider):
    """Asks the model of a run. `initial` is what the run was given, in the caller's own form."""

    id = "course"

    def __init__(self, model: Model, initial: tuple[Message, ...]) -> None:
        self._model = model
        self._initial = initial
        self._chunk: Chunk | None = None

    @property
    def chunk(self) -> Chunk:
        """The chunk of which the last piece was made, read-only. For a piece that was told: then it
        has been checked.
        """
        chunk = self._chunk
        if isinstance(chunk, ToolCallChunk):
            call = chunk.tool_call
            arguments = frozen(thawed(call.arguments))
            return ToolCallChunk(chunk.request_id, ToolCall(call.id, call.name, arguments))
        assert chunk is not None
        return chunk

    def context_window(self, model: str) -> int | None:
        """The course does not measure contexts."""
        return None

    async def stream(self, request: CoreRequest) -> AsyncIterator[StreamEvent]:
        """One answer. What the model raises is a failed answer; what it says wrongly is for the
        core to find, as far as it can be put into the core's words.
        """
        try:
            async for event in self._answer(request):
                yield event
        except ProtocolError:
            raise
        except Exception as error:  # a model's failure is a failed answer
            text = str(error) or type(error).__name__
            answer = failure(text, kind=STREAM, reason=ERROR, model=request.model)
            yield StreamEnd(message=answer)

    async def _answer(self, request: CoreRequest) -> AsyncIterator[StreamEvent]:
        asked = ModelRequest(request.id, self._transcript(request.messages))
        opened: Any = self._model.stream(asked, request.signal)
        if not hasattr(opened, "__aiter__") or not hasattr(opened, "result"):
            raise ProtocolError(f"the model opened {opened!r:.80}, which is no stream")
        yield StreamStart()
        chunks = aiter(opened)
        index = 0
        try:
            async for chunk in chunks:
                piece = _piece(chunk, index)
                index += 1
                self._chunk = chunk
                yield piece
        finally:
            if hasattr(chunks, "aclose"):
                await chunks.aclose()
        yield _end(await _final(opened.result()))

    def _transcript(self, messages: list[AnyMessage]) -> tuple[Message, ...]:
        produced = messages[len(self._initial) :]
        return (*self._initial, *map(course_message, produced))


async def _final(pending: Awaitable[Any]) -> Any:
    """The final answer. A future is the model's own: it is not cancelled with who waits for it."""
    if not asyncio.isfuture(pending):
        return await pending
    pending.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(pending)


def _piece(chunk: Any, index: int) -> StreamPiece:
    if isinstance(chunk, TextDelta) and isinstance(chunk.delta, str):
        request = _text(chunk.request_id, "the request id of a chunk")
        return StreamPiece(kind="text_delta", index=index, delta=chunk.delta, request_id=request)
    if not isinstance(chunk, ToolCallChunk) or not isinstance(chunk.tool_call, ToolCall):
        raise ProtocolError(f"the model streamed {chunk!r:.80}, which is no chunk")
    call = core_call(chunk.tool_call)
    return StreamPiece(
        kind="tool_call_end",
        index=index,
        tool_call_id=call.id,
        tool_name=call.name,
        call=call,
        request_id=_text(chunk.request_id, "the request id of a chunk"),
    )


def core_call(call: ToolCall) -> Call:
    """A call as the core knows it. Raises ProtocolError if id and name are no texts."""
    id, name = _text(call.id, "the id of a call"), _text(call.name, "the name of a call")
    return Call(id, name, thawed(call.arguments))


def _end(response: Any) -> StreamEnd:
    """The final answer as the core's. An unknown stop reason is left for the core to refuse."""
    if not isinstance(response, ModelResponse):
        raise ProtocolError(f"the model answered {response!r:.80}, which is no response")
    message, usage = response.message, response.usage
    if not isinstance(message, AssistantMessage) or not isinstance(message.content, tuple):
        raise ProtocolError("the answer holds no assistant message")
    for block in message.content:
        _require_block(block)
    reason = _REASONS.get(str(response.stop_reason), f"unknown: {response.stop_reason}")
    _text(message.id, "the id of the answer's message")
    about = {
        "id": _text(response.id, "the id of the answer"),
        "message_id": message.id,
        "stop_reason": reason,
    }
    answer = core_answer(message).model_copy(
        update={"response_metadata": about, "usage_metadata": _usage(usage)}
    )
    request = _text(response.request_id, "the request id of the answer")
    return StreamEnd(message=answer, request_id=request)


def _require_block(block: Any) -> None:
    if isinstance(block, ToolCall):
        if found := violations(core_call(block).arguments, DEFAULT_RULES):
            raise ProtocolError(f"the arguments of call {block.id!r}: {'; '.join(found.values())}")
    elif not isinstance(block, TextBlock) or not isinstance(block.text, str):
        raise ProtocolError(f"the answer holds {block!r:.80}, which is no block")


def _usage(usage: Any) -> Any:
    if not isinstance(usage, Usage):
        raise ProtocolError(f"the answer's usage is {usage!r:.80}")
    for count in (usage.input_tokens, usage.output_tokens):
        is_whole = isinstance(count, int) and not isinstance(count, bool)
        if not is_whole or not 0 <= count <= LARGEST_WHOLE:
            raise ProtocolError(f"the answer reports {count!r} tokens")
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ProtocolError(f"{what} is {value!r:.80}, which is no text")
    return value


def course_message(message: AnyMessage) -> Message:
    """A message that the run has produced, in the course's words."""
    if isinstance(message, ToolMessage):
        return ToolResultMessage(
            f"tool-result-{message.tool_call_id}",
            message.tool_call_id,
            str(message.name),
            str(message.content),
            message.status == "error",
        )
    assert isinstance(message, AIMessage)
    content = tuple(_block(item) for item in message.content)
    return AssistantMessage(message.response_metadata["message_id"], content)


def _block(item: Any) -> Block:
    if item["type"] == "text":
        return TextBlock(item["text"])
    return ToolCall(item["id"], item["name"], frozen(item["args"]))
