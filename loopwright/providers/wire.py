"""The request boundary: what of a ledger's view may be sent, and its form for OpenAI-like servers.

The ledger is never touched. How a server is spoken to lives in the providers.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
    convert_to_openai_data_block,
    is_data_content_block,
)

from loopwright.state.call_ids import CALL_BLOCKS, with_call_ids
from loopwright.state.messages import calls
from loopwright.state.repair import repair
from loopwright.text import clean_json, clean_text

NO_OUTPUT = "(no output)"
"""What is sent for an empty result: some servers refuse empty content."""

THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
"""Blocks that never leave, with their signatures and encrypted parts (K23: drop)."""

_NO_CONTENT = THINKING_BLOCKS | CALL_BLOCKS.keys()

SENT_TYPES = (HumanMessage, AIMessage, ToolMessage)
"""The messages of a ledger that are sent; stored system rows and other roles are not."""

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}

Content = str | list[str | dict[Any, Any]]
M = TypeVar("M", bound=BaseMessage)


def request_messages(system_prompt: str, messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The messages of a request: safe to send, in order, behind the system prompt if there is one.

    Contract (S1-04, S3-04, S3-05): `messages` is not changed. User, assistant and tool messages
    are sent, stored system rows and other roles are not; an assistant message without text and
    calls (a failed or cancelled answer) is left out. Pairing is made valid for sending, so a call
    without a result is answered by the interrupted marker. A message carries only what servers
    know (content, calls, call id, name), and nothing in it breaks JSON or UTF-8. Messages that are
    fit to send as they are stay the same objects.
    """
    known = [m for m in messages if isinstance(m, SENT_TYPES)]
    paired, _ = repair([with_clean_ids(message) for message in known])
    sent = [form for message in paired if (form := sendable(message)) is not None]
    return [*prompt_message(system_prompt), *sent]


def prompt_message(system_prompt: str) -> list[BaseMessage]:
    """The message in front of a request, if there is a prompt."""
    return [SystemMessage(clean_text(system_prompt))] if system_prompt else []


def api_messages(messages: Sequence[AnyMessage], system_prompt: str) -> list[dict[str, Any]]:
    """The messages of a request as an OpenAI-compatible server takes them (S3-04)."""
    return openai_form(request_messages(system_prompt, messages))


def openai_form(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The wire form of `request_messages`: role, content, tool_calls, tool_call_id and name.

    Content is null for an assistant message with calls and no text; `tool_calls` is never empty.
    """
    return [_openai_message(message) for message in messages]


def with_clean_ids(message: AnyMessage) -> AnyMessage:
    """Call ids are cleaned before pairing, because two of them may become one."""
    if isinstance(message, ToolMessage):
        id = clean_text(message.tool_call_id)
        same = id is message.tool_call_id
        return message if same else message.model_copy(update={"tool_call_id": id})
    if isinstance(message, AIMessage):
        old = [call.id for call in calls(message)]
        new = [clean_text(id) for id in old]
        return message if new == old else with_call_ids(message, new)
    return message


def sendable(message: AnyMessage) -> BaseMessage | None:
    """The message as it may be sent, None if nothing is left of it."""
    if isinstance(message, AIMessage):
        return _assistant(message)
    if isinstance(message, ToolMessage):
        return _result(message)
    content = _blocks(message.content)
    if _is_bare(message) and content is message.content:
        return message
    return _bare(message, content=content)


def _assistant(message: AIMessage) -> AIMessage | None:
    content = _assistant_content(message.content)
    tool_calls = [_call(call) for call in message.tool_calls]
    tool_calls += [_mended_call(call) for call in message.invalid_tool_calls]
    if not content and not tool_calls:
        return None
    same_calls = not message.invalid_tool_calls and all(
        a is b for a, b in zip(tool_calls, message.tool_calls, strict=True)
    )
    bare = _is_bare(message) and message.usage_metadata is None
    if bare and same_calls and content is message.content:
        return message
    return _bare(
        message, content=content, tool_calls=tool_calls, invalid_tool_calls=[], usage_metadata=None
    )


def _result(message: ToolMessage) -> ToolMessage:
    content = _blocks(message.content)
    if not content or (isinstance(content, str) and not content.strip()):
        content = NO_OUTPUT
    if _is_bare(message) and message.artifact is None and content is message.content:
        return message
    return _bare(message, content=content, artifact=None)


def _is_bare(message: BaseMessage) -> bool:
    """Whether a message has a clean name and nothing that servers do not know."""
    unknown = message.additional_kwargs or message.response_metadata or message.model_extra
    return not unknown and _name(message) is message.name


def _bare(message: M, **fields: Any) -> M:
    """A copy with these fields, a clean name and nothing that servers do not know."""
    fields |= {"additional_kwargs": {}, "response_metadata": {}, "name": _name(message)}
    copy = message.model_copy(update=fields)
    if copy.model_extra:
        copy.model_extra.clear()
    return copy


def _name(message: BaseMessage) -> str | None:
    return None if message.name is None else clean_text(message.name)


def _call(call: ToolCall) -> ToolCall:
    """A call with clean arguments and no field beside its own (no signature, no index)."""
    args, name = clean_json(call["args"]), clean_text(call["name"])
    same = args is call["args"] and name is call["name"] and len(call) == 4
    return call if same else ToolCall(name=name, args=args, id=call["id"], type="tool_call")


def _mended_call(call: InvalidToolCall) -> ToolCall:
    """A broken call in a form that servers take: its arguments if they are an object, else none."""
    args = _object(call["args"] or "")
    name = clean_text(call["name"] or "")
    return ToolCall(name=name, args=args, id=call["id"], type="tool_call")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return clean_json(value) if isinstance(value, dict) else {}


def _assistant_content(content: Content) -> Content:
    """Text, or blocks if there is more than text; thinking and repeated calls are left out.

    Texts side by side are one text that a server's answer cut into blocks, so they are joined.
    """
    if isinstance(content, str):
        return clean_text(content) if content.strip() else ""
    kept = [block for block in content if _kind(block) not in _NO_CONTENT]
    if all(_kind(block) == "text" for block in kept):
        return _assistant_content("".join(_text(block) for block in kept))
    bare = [{"type": "text", "text": _text(b)} if _kind(b) == "text" else b for b in kept]
    return _blocks(bare)


def _blocks(content: Content) -> Content:
    """Clean content without thinking and without blank texts, which some servers refuse."""
    if isinstance(content, str):
        return clean_text(content)
    kept = [b for b in content if _kind(b) not in THINKING_BLOCKS and not _is_blank(b)]
    clean: Content = clean_json(kept)
    return content if clean is kept and len(kept) == len(content) else clean


def _kind(block: str | dict[Any, Any]) -> str:
    return "text" if isinstance(block, str) else str(block.get("type"))


def _text(block: str | dict[Any, Any]) -> str:
    return block if isinstance(block, str) else str(block.get("text") or "")


def _is_blank(block: str | dict[Any, Any]) -> bool:
    return _kind(block) == "text" and not _text(block).strip()


def _openai_message(message: BaseMessage) -> dict[str, Any]:
    form: dict[str, Any] = {"role": _ROLES[message.type], "content": _openai_content(message)}
    if message.name is not None:
        form["name"] = message.name
    if isinstance(message, AIMessage) and message.tool_calls:
        form["content"] = form["content"] or None
        form["tool_calls"] = [_openai_call(call) for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        form["tool_call_id"] = message.tool_call_id
    return form


def _openai_content(message: BaseMessage) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    return [_openai_block(block) for block in message.content]


def _openai_block(block: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return convert_to_openai_data_block(block) if is_data_content_block(block) else block


def _openai_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}
