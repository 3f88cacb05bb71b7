"""Messages between the scenarios' short form, ours, and the simplified form of the traces.

What an event looks like in a trace is `recording`'s; which keys a scenario may have is `keys`'s.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    ToolMessage,
)

Json = dict[str, Any]

PENDING = "pending"
ROLES = {"human": "user", "ai": "assistant", "tool": "toolResult"}
STOPS = {"toolUse": "tool_use"}
_STOPS_OF_PI = {ours: pis for pis, ours in STOPS.items()}
_PIXEL = "iVBORw0KGgo="
"""Only the number of images is shown anywhere."""


def text_block(text: str) -> Json:
    """A content block of text."""
    return {"type": "text", "text": text}


def image_blocks(count: int) -> list[Json]:
    """So many content blocks with an image."""
    image = {"type": "image", "base64": _PIXEL, "mime_type": "image/png"}
    return [dict(image) for _ in range(count)]


def blocks(spec: Mapping[str, Any]) -> list[str | Json]:
    """The content of a message or result with these `text` and `images`."""
    texts = [text_block(spec["text"])] if "text" in spec else []
    return [*texts, *image_blocks(spec.get("images", 0))]


def message(short: str | Json) -> AnyMessage:
    """One of our messages for a message in short form."""
    spec: Json = {"text": short} if isinstance(short, str) else short
    role, content = spec.get("role", "user"), blocks(spec)
    if role == "user":
        return HumanMessage(content)
    if role == "assistant":
        return _assistant(spec, content)
    if role == "toolResult":
        return ToolMessage(
            content=content,
            tool_call_id=spec["toolCallId"],
            name=spec["toolName"],
            status="error" if spec.get("isError") else "success",
        )
    return ChatMessage(role=role, content=content)


def _assistant(spec: Json, content: list[str | Json]) -> AIMessage:
    calls = [tool_call(call) for call in spec.get("calls", [])]
    stop = spec.get("stop", "error" if "error" in spec else "toolUse" if calls else "stop")
    metadata = {"stop_reason": STOPS.get(stop, stop), "model": "m", "provider": "prov-m"}
    if "error" in spec:
        metadata["error_message"] = spec["error"]
    return AIMessage(content=content, tool_calls=calls, response_metadata=metadata)


def tool_call(call: Sequence[Any]) -> Json:
    """A tool call of ours for `[id, name, args]`."""
    return {"type": "tool_call", "id": call[0], "name": call[1], "args": call[2]}


def role_of(given: BaseMessage) -> str:
    """Pi's name for a message's role."""
    return given.role if isinstance(given, ChatMessage) else ROLES.get(given.type, given.type)


def stop_of(given: BaseMessage) -> str:
    """Pi's stop reason of an assistant message; one that is still coming in is pending."""
    reason = given.response_metadata.get("stop_reason", PENDING)
    return str(_STOPS_OF_PI.get(reason, reason))


def simplified(given: BaseMessage) -> Json:
    """A message as the traces show it."""
    shown: Json = {"role": role_of(given), **parts(_blocks_of(given))}
    calls = given.tool_calls if isinstance(given, AIMessage) else []
    if len(shown) == 1 and not calls:
        shown["empty"] = True
    if calls:
        shown["calls"] = [{key: call[key] for key in ("id", "name", "args")} for call in calls]
    if isinstance(given, AIMessage):
        shown |= _ending(given)
    if isinstance(given, ToolMessage):
        shown |= _result(given)
    return shown


def parts(content: Any) -> Json:
    """What the traces show of content: text, thinking, number of images; what is there."""
    if isinstance(content, str):
        return {"text": _cut(content)} if content else {}
    texts = [_cut(block["text"]) for block in content if block["type"] == "text"]
    thoughts = [block["reasoning"] for block in content if block["type"] == "reasoning"]
    images = sum(block["type"] == "image" for block in content)
    shown: Json = {"text": "".join(texts)} if texts else {}
    if thoughts:
        shown["thinking"] = "".join(thoughts)
    return {**shown, "images": images} if images else shown


def _cut(text: str) -> str:
    """The text; of a validation error only the first line, which is all that is prescribed."""
    return text.partition("\n")[0] if text.startswith("Validation failed for tool ") else text


def _blocks_of(given: BaseMessage) -> list[Any]:
    """The content as blocks; an empty text is no block of a result or of an unbegun answer."""
    if not isinstance(given.content, str):
        return given.content
    unbegun = isinstance(given, AIMessage) and stop_of(given) == PENDING
    if not given.content and (unbegun or isinstance(given, ToolMessage)):
        return []
    return [text_block(given.content)]


def _ending(given: AIMessage) -> Json:
    metadata = given.response_metadata
    shown: Json = {"stop": stop_of(given), "model": metadata.get("model")}
    if metadata.get("error_message"):
        shown["error"] = metadata["error_message"]
    return {**shown, "deferred": metadata["deferred"]} if "deferred" in metadata else shown


def _result(given: ToolMessage) -> Json:
    shown: Json = {
        "toolCallId": given.tool_call_id,
        "toolName": given.name,
        "isError": given.status == "error",
    }
    if given.artifact:
        shown["details"] = given.artifact
    added = given.additional_kwargs.get("added_tools")
    return {**shown, "addedToolNames": list(added)} if added else shown
