"""Messages that are fit to send as OpenAI's chat completions write them.

What may be sent at all is decided before, in `form` and `messages`.
"""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolCall,
    ToolMessage,
    convert_to_openai_data_block,
    is_data_content_block,
)

from loopwright.providers.dialect import Dialect
from loopwright.providers.wire.thinking import BESIDE

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


def openai_form(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The wire form of `request_messages`: role, content, tool_calls, tool_call_id and name.

    Content is null for an assistant message with calls and no text; `tool_calls` is never empty.
    """
    return [_message(message) for message in messages]


def in_dialect(row: dict[str, Any], message: BaseMessage, dialect: Dialect) -> dict[str, Any]:
    """A message's row, whoever wrote it, with what the dialect asks for beyond OpenAI's own."""
    if not isinstance(message, AIMessage):
        return row
    if not dialect.null_content and row.get("content") is None:
        row = {**row, "content": ""}
    if BESIDE in message.additional_kwargs and dialect.thinking_back == "reasoning_content":
        row = {**row, BESIDE: message.additional_kwargs[BESIDE]}
    return row


def _message(message: BaseMessage) -> dict[str, Any]:
    form: dict[str, Any] = {"role": _ROLES[message.type], "content": _content(message)}
    if message.name is not None:
        form["name"] = message.name
    if isinstance(message, AIMessage) and message.tool_calls:
        form["content"] = form["content"] or None
        form["tool_calls"] = [_call(call) for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        form["tool_call_id"] = message.tool_call_id
    return form


def _content(message: BaseMessage) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    return [_block(block) for block in message.content]


def _block(block: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return convert_to_openai_data_block(block) if is_data_content_block(block) else block


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}
