"""The offline model as a langchain chat model: streaming, tool calls, estimated usage.

What it says and calls is decided in `rules`; this is only the face.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from loopwright.errors import ConfigurationError
from loopwright.providers.offline.asking import Reply
from loopwright.providers.offline.rules import decide
from loopwright.providers.offline.transcript import fingerprint

_PIECE = re.compile(r"\s*\S{1,24}\s*")
_NO_TOOLS = ("none", False)
_OWN_CHOICE = (None, "auto", *_NO_TOOLS)


class OfflineModel(BaseChatModel):
    """A chat model made of fixed rules: no language model, no network, no key.

    It decides its next tool call only from the transcript it is sent and the tools it was bound
    to; the same transcript gives the same answer. It can say what is in a folder and what is left
    to do in it, read, search and list files, and answer a few questions about what it found; to
    everything else it says that it is rules only. Token counts are estimates (characters / 4).
    """

    model_name: str = "offline-rules"

    @property
    def _llm_type(self) -> str:
        return "loopwright-offline-rules"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools. Raises ConfigurationError for a `tool_choice` that would force a call."""
        if tool_choice not in _OWN_CHOICE:
            raise ConfigurationError(
                f"the offline model chooses by its rules: tool_choice may be 'auto' or 'none', "
                f"not {tool_choice!r}",
                field="tool_choice",
            )
        offered = [] if tool_choice in _NO_TOOLS else [convert_to_openai_tool(t) for t in tools]
        return self.bind(tools=offered, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        whole: AIMessageChunk | None = None
        for piece in _pieces(messages, _reply(messages, stop, kwargs), self.model_name):
            whole = piece if whole is None else whole + piece
        assert whole is not None
        message = AIMessage(
            content=whole.content,
            tool_calls=whole.tool_calls,
            usage_metadata=whole.usage_metadata,
            response_metadata=whole.response_metadata,
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in _pieces(messages, _reply(messages, stop, kwargs), self.model_name):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(piece.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in _pieces(messages, _reply(messages, stop, kwargs), self.model_name):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                await run_manager.on_llm_new_token(piece.text, chunk=chunk)
            yield chunk


def _reply(
    messages: Sequence[BaseMessage], stop: list[str] | None, options: dict[str, Any]
) -> Reply:
    offered = {tool["function"]["name"] for tool in options.get("tools", [])}
    reply = decide(messages, offered)
    cuts = [at for word in stop or [] if (at := reply.text.find(word)) >= 0]
    return Reply(reply.text[: min(cuts)], ()) if cuts else reply


def _pieces(
    messages: Sequence[BaseMessage], reply: Reply, model_name: str
) -> Iterator[AIMessageChunk]:
    """The reply as a server would stream it: text in small pieces, then each call, then usage."""
    for piece in _PIECE.findall(reply.text):
        yield AIMessageChunk(content=piece)
    mark = fingerprint(messages) if reply.calls else ""
    sent = 0
    for index, call in enumerate(reply.calls):
        text = json.dumps(call.arguments, ensure_ascii=False)
        half = len(text) // 2
        named = tool_call_chunk(
            name=call.tool, args=text[:half], id=f"offline_{mark}_{index}", index=index
        )
        rest = tool_call_chunk(name=None, args=text[half:], id=None, index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[named])
        yield AIMessageChunk(content="", tool_call_chunks=[rest])
        sent += len(call.tool) + len(text)
    yield AIMessageChunk(
        content="",
        usage_metadata=_usage(messages, len(reply.text) + sent),
        response_metadata={
            "model_name": model_name,
            "model_provider": "loopwright",
            "finish_reason": "tool_calls" if reply.calls else "stop",
        },
        chunk_position="last",
    )


def _usage(messages: Sequence[BaseMessage], produced: int) -> UsageMetadata:
    read = sum(len(message.text) for message in messages)
    tokens_in, tokens_out = read // 4 + 1, produced // 4 + 1
    return UsageMetadata(
        input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out
    )
