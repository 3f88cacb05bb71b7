"""A langchain chat model that plays a script: streamed and whole answers, failures, pauses.

The answers themselves are described in `script`; an HTTP server that plays them is in `server`.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from loopwright.clock import Clock, SystemClock
from loopwright.testing.gate import Gate
from loopwright.testing.script import (
    Delta,
    Pause,
    Response,
    Script,
    as_response,
    deltas,
    ending,
    timeline,
)

Answer = str | AIMessage | Response | Exception
Scripted = Answer | Callable[[list[BaseMessage]], Answer]
"""Text, a message, a `Response`, an exception to raise, or a function of the request's messages."""


@dataclass(frozen=True)
class ScriptedRequest:
    """A request that a `ScriptedModel` got: messages, bound tools (OpenAI form), other options."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def tool_names(self) -> list[str]:
        """The names of the bound tools, in the order in which they were bound."""
        return [tool["function"]["name"] for tool in self.tools]


class ScriptedModel(BaseChatModel):
    """Answers its n-th request with the n-th item of `responses`; ScriptExhausted past the end.

    Works wherever langchain takes a chat model, streaming or not, sync or async, and may be shared
    by threads and event loops. Models made by `bind_tools` share the script and its record. Sync
    calls wait in real time, whatever the clock.
    """

    script: Script[ScriptedRequest] = Field(exclude=True, repr=False)
    clock: Any = Field(exclude=True, repr=False)
    model_name: str = "scripted"

    def __init__(
        self,
        responses: Iterable[Scripted] = (),
        *,
        clock: Clock | None = None,
        **fields: Any,
    ) -> None:
        fields.setdefault("script", Script(responses))
        fields["clock"] = clock or SystemClock()
        super().__init__(**fields)

    @property
    def requests(self) -> list[ScriptedRequest]:
        """Every request so far, in order; also the ones that were answered with an exception."""
        return self.script.requests

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools; dict schemas, functions and langchain tools are all accepted."""
        options = {**kwargs, **({"tool_choice": tool_choice} if tool_choice else {})}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _steps(
        self, messages: list[BaseMessage], kwargs: dict[str, Any]
    ) -> Iterator[AIMessageChunk | Pause | Gate | Exception]:
        options = {key: value for key, value in kwargs.items() if key not in ("tools", "stream")}
        request = ScriptedRequest(list(messages), kwargs.get("tools", []), options)
        answer = self.script.take(request, lambda taken: taken.messages)
        if isinstance(answer, Exception):
            return iter([answer])
        response = as_response(answer)
        if response.chunks is not None:
            return timeline(response, response.chunks)
        end = [_chunk(delta, response.id) for delta in ending(response)]
        if end and end[-1].response_metadata:
            end[-1].chunk_position = "last"
        return timeline(response, [_chunk(d, response.id) for d in deltas(response)], end)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for step in self._steps(messages, kwargs):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Pause):
                time.sleep(step.seconds)
            elif isinstance(step, Gate):
                step.wait_blocking()
            else:
                yield ChatGenerationChunk(message=step)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for step in self._steps(messages, kwargs):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Pause):
                await self.clock.sleep(step.seconds)
            elif isinstance(step, Gate):
                await step.wait()
            else:
                yield ChatGenerationChunk(message=step)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _whole([chunk.message for chunk in self._stream(messages, **kwargs)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _whole([chunk.message async for chunk in self._astream(messages, **kwargs)])


def _chunk(delta: Delta, id: str | None) -> AIMessageChunk:
    calls = []
    if delta.index is not None:
        calls = [
            tool_call_chunk(
                name=delta.call_name, args=delta.arguments, id=delta.call_id, index=delta.index
            )
        ]
    return AIMessageChunk(
        content=delta.text,
        id=id,
        tool_call_chunks=calls,
        additional_kwargs={"reasoning_content": delta.thinking} if delta.thinking else {},
        response_metadata={"finish_reason": delta.stop} if delta.stop else {},
        usage_metadata=cast("UsageMetadata | None", delta.usage),
    )


def _whole(chunks: list[Any]) -> ChatResult:
    """One message of all chunks, as a provider's answer without streaming looks."""
    merged = AIMessageChunk(content="")
    for chunk in chunks:
        merged = merged + chunk
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for call in merged.tool_call_chunks:
        # langchain's own merge would complete a broken text and hide what was scripted.
        try:
            args = json.loads(call["args"] or "{}")
        except ValueError as error:
            broken.append(
                invalid_tool_call(
                    name=call["name"], args=call["args"], id=call["id"], error=str(error)
                )
            )
        else:
            calls.append(tool_call(name=call["name"] or "", args=args, id=call["id"]))
    whole = message_chunk_to_message(merged)
    whole = whole.model_copy(update={"tool_calls": calls, "invalid_tool_calls": broken})
    return ChatResult(generations=[ChatGeneration(message=whole)])
