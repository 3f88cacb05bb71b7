"""The messages of the vectors (user, assistant with blocks, toolResult) as ours, and back.

A role, block or field that is not known here raises ValueError: it might change what is meant.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

FIELDS = {
    "user": {"id", "role", "content"},
    "assistant": {"id", "role", "content"},
    "toolResult": {"id", "role", "toolCallId", "toolName", "content", "isError"},
}


def from_pi(row: dict[str, Any]) -> AnyMessage:
    """One of our messages for one of the vectors."""
    unknown = set(row) - FIELDS.get(row["role"], set())
    if unknown:
        raise ValueError(f"a message with unknown {sorted(unknown)}")
    if row["role"] == "user":
        return HumanMessage(row["content"], id=row["id"])
    if row["role"] == "assistant":
        return _assistant(row)
    return ToolMessage(
        content=row["content"],
        id=row["id"],
        tool_call_id=row["toolCallId"],
        name=row["toolName"],
        status="error" if row["isError"] else "success",
    )


def to_pi(message: AnyMessage) -> dict[str, Any]:
    """The vectors' form of one of our messages."""
    if isinstance(message, HumanMessage):
        return {"id": message.id, "role": "user", "content": message.content}
    if isinstance(message, AIMessage):
        return {"id": message.id, "role": "assistant", "content": _blocks(message)}
    if isinstance(message, ToolMessage):
        return {
            "id": message.id,
            "role": "toolResult",
            "toolCallId": message.tool_call_id,
            "toolName": message.name,
            "content": message.content,
            "isError": message.status == "error",
        }
    raise ValueError(f"no form for a message of type {message.type!r}")


def _assistant(row: dict[str, Any]) -> AIMessage:
    """Calls stand twice, as with providers that send blocks: as calls, and in the content."""
    content: list[str | dict[Any, Any]] = []
    calls = []
    for block in row["content"]:
        if block["type"] == "text":
            content.append({"type": "text", "text": block["text"]})
        elif block["type"] == "toolCall":
            call = {"name": block["name"], "args": block["arguments"], "id": block["id"]}
            content.append({"type": "tool_call", **call})
            calls.append(call)
        else:
            raise ValueError(f"a block of unknown type {block['type']!r}")
    return AIMessage(content=content, id=row["id"], tool_calls=calls)


def _blocks(message: AIMessage) -> list[dict[str, Any]]:
    """The content in order; a call that its block does not repeat exactly raises ValueError."""
    waiting = list(message.tool_calls)
    blocks: list[dict[str, Any]] = []
    for block in _content(message):
        if block["type"] == "text":
            blocks.append({"type": "text", "text": block["text"]})
            continue
        if not waiting or {**waiting[0], "type": "tool_call"} != block:
            raise ValueError(f"block {block!r} does not repeat the call {waiting[:1]!r}")
        call = waiting.pop(0)
        blocks.append(
            {"type": "toolCall", "id": call["id"], "name": call["name"], "arguments": call["args"]}
        )
    if waiting:
        raise ValueError(f"no block repeats the call {waiting[0]!r}")
    return blocks


def _content(message: AIMessage) -> Sequence[dict[str, Any]]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content else []
    return [{"type": "text", "text": b} if isinstance(b, str) else b for b in message.content]
