"""What a real run sends: an agent, the client of a server by name, and the bytes that came in.

What of them is looked at is each driver's business.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

from loopwright import Agent
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.dialect import GENERIC, Dialect
from loopwright.providers.openai_chat import OpenAIChat
from loopwright.testing import HttpReply, OpenAIServer
from loopwright.testing.http import ServerRequest
from loopwright.testing.server import ScriptedReply
from tests.conformance.loading import THREAD, store

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "base64": PNG, "mime_type": "image/png"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Maker:
    """Who answers, by the three names that are stored with an answer."""

    provider: str = "test"
    api: str = "openai-completions"
    model: str = "test-model"

    def metadata(self) -> dict[str, Any]:
        """As an answer of this one has them."""
        return {"provider": self.provider, "api": self.api, "model": self.model}


@asynccontextmanager
async def served(
    replies: Iterable[ScriptedReply], *, stored: Sequence[AnyMessage] = (), **parts: Any
) -> AsyncIterator[tuple[Agent, OpenAIServer]]:
    """An agent whose model is a server with these replies, on a thread with this history.

    `parts` are those of `speaking`.
    """
    async with OpenAIServer(replies) as server, speaking(server, **parts) as agent:
        if stored:
            await store(agent, stored, "ended")
        yield agent, server


@asynccontextmanager
async def speaking(
    server: OpenAIServer,
    *,
    dialect: Dialect = GENERIC,
    maker: Maker | None = None,
    kind: type[Agent] = Agent,
    thread: str = THREAD,
    **parts: Any,
) -> AsyncIterator[Agent]:
    """An agent with this server for its model."""
    maker = maker or Maker()
    async with DefaultAsyncHttpxClient() as http:
        client = OpenAIChat(
            model=maker.model,
            base_url=server.base_url,
            api_key=SecretStr("key"),
            http_async_client=http,
            max_retries=0,
            use_responses_api=False,
            dialect=dialect,
        )
        names: Any = {"id": maker.provider, "name": maker.model, "api": maker.api}
        provider = ChatModelProvider(client, dialect=dialect, **names)
        async with kind(provider, thread=thread, **parts) as agent:
            yield agent


def rows(request: ServerRequest, role: str | None = None) -> list[Row]:
    """The messages of a request, all or those of a role."""
    sent: list[Row] = request.body["messages"]
    return [row for row in sent if role in (None, row["role"])]


def text(row: Row) -> str:
    """What a message says: its string, or its text blocks in a row."""
    content = row["content"]
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


def has_image(row: Row) -> bool:
    """Whether a message shows an image."""
    blocks = row["content"] if isinstance(row["content"], list) else []
    return any(block["type"] == "image_url" for block in blocks)


def is_valid(request: ServerRequest) -> bool:
    """Whether the body is JSON in UTF-8 without NUL and without half a surrogate pair."""
    try:
        value = json.loads(request.raw.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return False
    return r"\u0000" not in json.dumps(value).replace("\\\\", "")


RULES: dict[str, Callable[[list[Row]], bool]] = {
    "assistant.content must be a string": lambda sent: all(
        isinstance(row["content"], str) for row in sent if row["role"] == "assistant"
    ),
    "assistant.content must not be an empty string": lambda sent: all(
        row["content"] != "" for row in sent if row["role"] == "assistant"
    ),
    "tool content must be text; images only in user role": lambda sent: all(
        (row["role"] != "tool" or isinstance(row["content"], str))
        and (row["role"] == "user" or not has_image(row))
        for row in sent
    ),
}
"""What a strict server asks of the messages, by the words of the cases."""


def strict(rule: str, reply: Any) -> Callable[[Any], Any]:
    """A reply of a server that answers 400 to what breaks its rule. Raises for an unknown rule."""
    keeps = RULES[rule]

    def answer(body: Any) -> Any:
        if keeps(body["messages"]):
            return reply
        error = {"message": f"Invalid request: {rule}", "type": "invalid_request_error"}
        return HttpReply(status=400, body={"error": error})

    return answer
