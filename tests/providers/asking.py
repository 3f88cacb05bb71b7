"""One request to a provider, and what came of it: used by the tests of the streaming providers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEnd,
    StreamEvent,
    StreamPiece,
)
from loopwright.testing import OpenAIServer
from loopwright.testing.server import ScriptedReply
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult

KEY = "sk-very-secret-key"


@dataclass(frozen=True)
class Told:
    """The events of one answer."""

    events: list[StreamEvent]

    @property
    def message(self) -> AIMessage:
        """The message of the last event, which must be the only end."""
        assert [type(event) for event in self.events].count(StreamEnd) == 1
        end = self.events[-1]
        assert isinstance(end, StreamEnd)
        return end.message

    @property
    def pieces(self) -> list[tuple[str, int, str]]:
        return [(e.kind, e.index, e.delta) for e in self.events if isinstance(e, StreamPiece)]

    def said(self, key: str) -> Any:
        """A field of the message's metadata."""
        return self.message.response_metadata.get(key)


def request(*messages: AnyMessage, **fields: Any) -> ModelRequest:
    shown = list(messages) or [HumanMessage("hi")]
    return ModelRequest(**{"model": "m", "system_prompt": "", "messages": shown, **fields})


async def ask(provider: Provider, *messages: AnyMessage, **fields: Any) -> Told:
    return Told([event async for event in provider.stream(request(*messages, **fields))])


def client(server: OpenAIServer, **fields: Any) -> ChatModelProvider:
    """The real langchain-openai client on the test server."""
    fields = {"stream_usage": True, "max_retries": 0, **fields}
    model = ChatOpenAI(
        model="test-model", base_url=server.base_url, api_key=SecretStr(KEY), **fields
    )
    return ChatModelProvider(model, id="test")


async def ask_server(*replies: ScriptedReply, **fields: Any) -> Told:
    """The answer to one request over real HTTP."""
    async with OpenAIServer(replies) as server:
        return await ask(client(server), **fields)


async def _nothing(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult()


def tools(*names: str) -> Sequence[Tool]:
    return [
        Tool(name=name, description=f"does {name}", parameters={"type": "object"}, execute=_nothing)
        for name in names
    ]
