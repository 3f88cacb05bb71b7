"""A provider for models that know no tools: a JSON schema leaves them only calls to write."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import ModelRequest, Provider, StreamEnd, StreamEvent
from loopwright.state.messages import new_id
from loopwright.tools.contract import Tool


class ConstrainedCalls(Provider):
    """Answers with a call of one of the tools until there is a result, then in free text."""

    id = "llamacpp"

    def __init__(self, address: str, model: str) -> None:
        self._address, self._model = address, model

    def context_window(self, model: str) -> int | None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        is_answered = any(message.type == "tool" for message in request.messages)
        provider = self._provider(() if is_answered else request.tools)
        async for event in provider.stream(replace(request, tools=())):
            if isinstance(event, StreamEnd) and not is_answered:
                event = StreamEnd(message=_call(event.message))
            if isinstance(event, StreamEnd) or is_answered:
                yield event

    def _provider(self, tools: Sequence[Tool]) -> Provider:
        shape = {"response_format": _shape(tools)} if tools else {}
        model = ChatOpenAI(
            model=self._model,
            base_url=f"{self._address}/v1",
            api_key=SecretStr("none"),
            max_retries=0,
            stream_usage=True,
            model_kwargs=shape,
        )
        return ChatModelProvider(model, id=self.id, name=self._model)


def _shape(tools: Sequence[Tool]) -> dict[str, Any]:
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": tool.parameters},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    schema = {"name": "call", "strict": True, "schema": {"oneOf": calls}}
    return {"type": "json_schema", "json_schema": schema}


def _call(message: AIMessage) -> AIMessage:
    said = json.loads(message.text)
    call = tool_call(name=said["tool"], args=said["arguments"], id=new_id())
    about = {**message.response_metadata, "stop_reason": "tool_use"}
    return message.model_copy(
        update={"content": "", "tool_calls": [call], "response_metadata": about}
    )
