"""The short form of transcripts in the report cases (`{"role", "id", "calls"}`) as our messages.

A role or field that is not known here raises ValueError: it might change what is meant.
"""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.state.messages import calls
from loopwright.state.repair import is_interrupted

TOOL = "t"
FIELDS = {
    "user": {"role", "id", "content"},
    "assistant": {"role", "id", "content", "calls"},
    "tool": {"role", "id", "content", "for", "synthetic"},
}


def message(row: dict[str, Any]) -> AnyMessage:
    """The message of a row; content that is not given is a text of its own."""
    role, id = row["role"], row.get("id")
    unknown = set(row) - FIELDS.get(role, set())
    if unknown or row.get("synthetic"):
        raise ValueError(f"a stored {role} message with {sorted(unknown) or 'synthetic'}")
    content = row.get("content", f"text of {id}") or ""
    if role == "user":
        return HumanMessage(content, id=id)
    if role == "tool":
        return ToolMessage(content, id=id, tool_call_id=row["for"], name=TOOL)
    made = [{"name": TOOL, "args": {}, "id": call} for call in row.get("calls", [])]
    return AIMessage(content, id=id, tool_calls=made)


def shows(actual: AnyMessage, row: dict[str, Any]) -> bool:
    """Whether a message is what the row says; a tool row is a real result unless `synthetic`."""
    unknown = set(row) - FIELDS.get(row["role"], set())
    if unknown:
        raise ValueError(f"an expected {row['role']} message with {sorted(unknown)}")
    if actual.type != {"user": "human", "assistant": "ai", "tool": "tool"}[row["role"]]:
        return False
    fits = [row.get("id", actual.id) == actual.id]
    if "content" in row:
        fits.append((row["content"] or "") == actual.content)
    if "calls" in row:
        fits.append(row["calls"] == [call.id for call in calls(actual)])
    if isinstance(actual, ToolMessage):
        fits.append(row["for"] == actual.tool_call_id)
        fits.append(row.get("synthetic", False) == is_interrupted(actual))
        fits.append(actual.status == "error" or not row.get("synthetic"))
    return all(fits)
