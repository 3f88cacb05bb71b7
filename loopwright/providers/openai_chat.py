"""langchain-openai's chat model with requests in a dialect, and a reader of its own for streams of
chat completions.

Keys, retries and the Responses API are langchain-openai's. Its reader drops calls without
an index, thinking, refusals and all choices that it does not expect, and fails on keep-alives; here
each payload goes through `completion_chunks`. Imported late: langchain-openai is slow to import.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import Field

from loopwright.providers.completion_chunks import CompletionReader, error_in
from loopwright.providers.dialect import Dialect
from loopwright.providers.sse import ServerEvent, events
from loopwright.providers.wire.openai import in_dialect

_DONE = "[DONE]"
_DRAIN_SECONDS = 0.2


class OpenAIChat(ChatOpenAI):
    """A ChatOpenAI whose streams keep what the server sent: thinking deltas under any of their
    names, refusals, calls without index or with their id in another place, the counts of every
    payload. A server that answers a request for a stream with one whole object is understood.

    An error in a stream is raised as openai.APIError whose `body` is what the server said; a data
    line that was cut as JSONDecodeError.
    """

    dialect: Dialect = Field(default_factory=Dialect, exclude=True)
    """How the messages of its requests are written."""

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """As of the class it stands for, so that its traces read the same."""
        return ChatOpenAI.get_lc_namespace()

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "messages" in payload:  # the responses API has none
            messages = self._convert_input(input_).to_messages()
            rows = zip(payload["messages"], messages, strict=True)
            payload["messages"] = [in_dialect(row, said, self.dialect) for row, said in rows]
        return payload

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self._use_responses_api({**kwargs, **self.model_kwargs}):
            async for chunk in super()._astream(
                messages, stop, run_manager, stream_usage=stream_usage, **kwargs
            ):
                yield chunk
            return
        if self._should_stream_usage(stream_usage, **kwargs):
            kwargs["stream_options"] = {"include_usage": True}
        payload = self._get_request_payload(messages, stop=stop, stream=True, **kwargs)
        reader = CompletionReader()
        async for said in self._payloads(payload):
            message = reader.read(said)
            info = message.response_metadata or None
            chunk = ChatGenerationChunk.model_construct(
                text=message.content if isinstance(message.content, str) else "",
                message=message,
                generation_info=info,
            )
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _payloads(self, payload: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The JSON objects of an answer up to its end mark, the one of a whole answer too."""
        async with self.async_client.with_streaming_response.create(**payload) as response:
            request = response.http_request
            if "json" in response.headers.get("content-type", ""):
                yield _checked(ServerEvent("", (await response.read()).decode()), request)
                return
            reads = response.iter_bytes()
            async for event in events(reads):
                if event.data.startswith(_DONE):
                    await _drained(reads)
                    return
                yield _checked(event, request)


async def _drained(reads: AsyncIterator[bytes]) -> None:
    """Read to the response's end, without which its connection could not be used again; a server
    that does not end it is not waited for.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in reads:
                pass


def _checked(event: ServerEvent, request: Any) -> dict[str, Any]:
    """The object of an event. Raises openai.APIError for one that tells of a failure."""
    said = json.loads(event.data)
    error = error_in(said, event.name)
    if error is not None:
        message = error.get("message") or error.get("detail")
        text = message if isinstance(message, str) else "the server sent an error in its stream"
        raise openai.APIError(text, request, body=dict(error))
    return said if isinstance(said, dict) else {}
