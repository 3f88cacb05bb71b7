"""A ToolResult as JSON and back: what the journal holds of a call that has finished.

When it is written and used is said in `calls`; how results join the ledger, too.
"""

from dataclasses import fields
from typing import Any

from langchain_core.messages import AnyMessage, messages_from_dict

from loopwright.tools.contract import JsonObject, ToolResult
from loopwright.tools.results import details_of


def to_json(result: ToolResult) -> JsonObject:
    """Plain JSON values. Of what has no JSON form (a hook may have put it there) a note is left."""
    return {
        "content": details_of(result.content),
        "details": details_of(result.details),
        "is_error": result.is_error,
        "terminate": result.terminate,
        "messages": [_message_to_json(message) for message in result.messages],
        "usage": details_of(result.usage),
        "added_tools": list(result.added_tools),
    }


def from_json(data: JsonObject) -> ToolResult:
    """The result that `to_json` was given; what is missing has its default, what is more is left.

    Content that had no JSON form is text now.
    """
    known = {field.name: data[field.name] for field in fields(ToolResult) if field.name in data}
    content = known.get("content", "")
    known["content"] = content if isinstance(content, str | list) else str(content)
    known["messages"] = tuple(messages_from_dict(known.get("messages", [])))
    known["added_tools"] = tuple(known.get("added_tools", ()))
    return ToolResult(**known)


def _message_to_json(message: AnyMessage) -> dict[str, Any]:
    dumped = message.model_dump(mode="json", fallback=str)
    return {"type": message.type, "data": dumped}
