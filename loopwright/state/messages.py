"""The messages of a ledger: how they are made from what a caller gives, and how they are read.

Which lists of them are valid lives in `transcript`, how invalid ones are mended in `repair`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
    message_chunk_to_message,
)

from loopwright.errors import InputError, ModelError, ModelErrorKind
from loopwright.state.images import image_block
from loopwright.text import clean_json, clean_text

STOP = "stop"
TOOL_USE = "tool_use"
LENGTH = "length"
ERROR = "error"
ABORTED = "aborted"

Prompt = str | BaseMessage | dict[str, Any] | Sequence[Any]
"""Text, one message, or a list of messages (langchain-core objects or their dict forms)."""


@dataclass(frozen=True)
class Call:
    """A tool call of an assistant message as the model made it.

    `error` is None for a runnable call; otherwise it says why the call must not run, and
    `arguments` is the raw text that the model sent.
    """

    id: str
    name: str
    arguments: Any
    error: str | None = None


def new_id() -> str:
    """A fresh message or call id."""
    return uuid4().hex


def calls(message: BaseMessage) -> list[Call]:
    """The tool calls of a message in order, the broken ones behind the runnable ones."""
    if not isinstance(message, AIMessage):
        return []
    whole = [Call(c["id"] or "", c["name"], c["args"]) for c in message.tool_calls]
    broken = [
        Call(c["id"] or "", c["name"] or "", c["args"], c["error"] or "its arguments are broken")
        for c in message.invalid_tool_calls
    ]
    return whole + broken


def stop_reason(message: BaseMessage) -> str:
    """Why the model stopped: stop, tool_use, length, error, aborted, or the provider's own word."""
    reason = getattr(message, "response_metadata", {}).get("stop_reason")
    if reason:
        return str(reason)
    return TOOL_USE if calls(message) else STOP


def error_of(message: BaseMessage) -> dict[str, str] | None:
    """`{"kind", "message"}` of an assistant message that stands for a failure, else None."""
    metadata = getattr(message, "response_metadata", {})
    text = metadata.get("error_message")
    return {"kind": str(metadata.get("error_kind", "unknown")), "message": text} if text else None


def error_metadata(error: ModelError) -> dict[str, Any]:
    """What a failed answer says of its error, in its response_metadata: `error_message` and
    `error_kind`, and what else is known of `status`, `retry_after` and `refused`."""
    found = {
        "error_status": error.status,
        "error_retry_after": error.retry_after,
        "error_refused": error.refused,
    }
    given = {name: value for name, value in found.items() if value is not None}
    return {"error_message": str(error), "error_kind": error.kind, **given}


def failure_of(message: AIMessage) -> ModelError | None:
    """The error that a failed answer was stored with; None for kinds of others, and for answers."""
    metadata = message.response_metadata
    if metadata.get("error_kind") not in get_args(ModelErrorKind):
        return None
    return ModelError(
        metadata.get("error_message") or "",
        kind=metadata["error_kind"],
        status=metadata.get("error_status"),
        retry_after=metadata.get("error_retry_after"),
        refused=metadata.get("error_refused"),
    )


def open_calls(messages: Sequence[BaseMessage]) -> list[Call]:
    """The calls of the last assistant message that no later message answers; O(last turn)."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [call for call in calls(message) if call.id not in answered]
    return []


def failure(text: str, *, kind: str, reason: str, model: str) -> AIMessage:
    """The assistant message that stands for a request or run that failed or was cancelled."""
    return AIMessage(
        content="",
        id=new_id(),
        response_metadata={
            "stop_reason": reason,
            "error_message": text,
            "error_kind": kind,
            "model": model,
        },
    )


def tool_error(call: Call, text: str) -> ToolMessage:
    """The error result of a call that was not executed or went wrong."""
    return ToolMessage(
        content=text, tool_call_id=call.id, name=call.name, status="error", id=new_id()
    )


def as_messages(prompt: Prompt, images: Sequence[Any] = ()) -> list[AnyMessage]:
    """Coerce what a caller gives into complete messages with ids; text becomes a user message.

    `images` (see `images.image_block`) join a text prompt in its message. Raises InputError for
    what is no message: nothing is guessed and nothing is half admitted.
    """
    if images and not isinstance(prompt, str):
        raise InputError("images go with a text prompt: put them into the message instead")
    if isinstance(prompt, str):
        prompt = clean_text(prompt)
        blocks: Any = [{"type": "text", "text": prompt}, *map(image_block, images)]
        return [HumanMessage(blocks if images else prompt, id=new_id())]
    items = [prompt] if isinstance(prompt, BaseMessage | dict) else list(prompt)
    return [_as_message(item) for item in items]


def _as_message(item: Any) -> AnyMessage:
    if isinstance(item, str):
        return HumanMessage(clean_text(item), id=new_id())
    if isinstance(item, dict) and "__overwrite__" in (item.get("type"), *item):
        raise InputError("an input may not overwrite the transcript: fork the thread instead")
    try:
        (message,) = convert_to_messages([item])
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise InputError(f"not a message: {str(item)[:80]!r} ({error})") from error
    if isinstance(message, RemoveMessage):
        raise InputError("an input may not remove messages: fork the thread instead")
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    content = clean_json(message.content)  # a checkpoint would store "?" for half a pair
    update = {} if content is message.content else {"content": content}
    if not message.id:
        update["id"] = new_id()
    complete: AnyMessage = message.model_copy(update=update) if update else message  # type: ignore[assignment]
    return complete


def identified(messages: Iterable[AnyMessage], taken: set[str]) -> list[AnyMessage]:
    """The messages with ids that are not in `taken`; `taken` grows by them."""
    fresh: list[AnyMessage] = []
    for message in messages:
        if not message.id or message.id in taken:
            message = message.model_copy(update={"id": new_id()})
        taken.add(str(message.id))
        fresh.append(message)
    return fresh
