"""One message as it may be sent: clean text, known fields, content in the target's dialect.

What a list of messages needs besides (pairing, images of a batch) lives in `form`.
"""

import json
from collections.abc import Collection, Mapping, Sequence
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
)

from loopwright.errors import RequestPart
from loopwright.providers.wire import images, thinking
from loopwright.providers.wire.blocks import (
    Block,
    Content,
    is_bare_text,
    is_blank,
    kind,
    text_of,
)
from loopwright.providers.wire.names import ToolNames
from loopwright.providers.wire.target import Target
from loopwright.state.call_ids import CALL_BLOCKS, with_call_ids
from loopwright.state.messages import calls
from loopwright.text import clean_json, clean_text

NO_OUTPUT = "(no output)"
"""What is sent for an empty result: some servers refuse empty content."""

M = TypeVar("M", bound=BaseMessage)


def prompt_message(system_prompt: str) -> list[BaseMessage]:
    """The message in front of a request, if there is a prompt."""
    return [SystemMessage(clean_text(system_prompt))] if system_prompt else []


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


def user(message: HumanMessage, target: Target) -> HumanMessage:
    """A user's message: text and what it shows."""
    content = _visible(_blocks(message.content), target)
    name = _name(message, target.names)
    if _is_bare(message) and name is message.name and content is message.content:
        return message
    return _bare(message, name=name, content=content)


def answer(message: AIMessage, target: Target) -> AIMessage | None:
    """An assistant's message; None if nothing is left of it."""
    content = thinking.permitted(message, target)
    signatures = thinking.signatures(message, target)
    tool_calls = [_call(call, target.names, signatures) for call in message.tool_calls]
    tool_calls += [_mended_call(call, target.names) for call in message.invalid_tool_calls]
    content, beside = _spoken(content, target, has_calls=bool(tool_calls))
    if not content and not tool_calls:
        return None
    same_calls = not message.invalid_tool_calls and all(
        a is b for a, b in zip(tool_calls, message.tool_calls, strict=True)
    )
    bare = _is_bare(message) and message.usage_metadata is None and not beside
    name = _name(message, target.names)
    if bare and same_calls and name is message.name and content is message.content:
        return message
    update: dict[str, Any] = {"content": content, "tool_calls": tool_calls, "name": name}
    form = _bare(message, **update, invalid_tool_calls=[], usage_metadata=None)
    if beside:
        form.additional_kwargs[thinking.BESIDE] = beside
    return form


def result(message: ToolMessage, target: Target, shown: int) -> tuple[ToolMessage, list[Block]]:
    """A tool's result, and the blocks that have to be sent behind its batch.

    `shown` is how many the results before it in the batch have moved there.
    """
    content, moved = _blocks(message.content), list[Block]()
    if not isinstance(content, str):
        content = _without_refused(content, target)
        if not target.dialect.image_results:
            texts, moved = images.parted(content, shown)
            content = "\n".join(text_of(text) for text in texts)
    if not content or (isinstance(content, str) and not content.strip()):
        content = NO_OUTPUT
    name = _name(message, target.names)
    bare = _is_bare(message) and message.artifact is None
    if bare and name is message.name and content is message.content:
        return message, moved
    return _bare(message, content=content, artifact=None, name=name), moved


def without(message: BaseMessage, parts: Collection[RequestPart]) -> BaseMessage | None:
    """A message that was made fit to send, without these parts; None if nothing is left of it."""
    content: Content = message.content
    if "images" in parts:
        content = images.without_images(content)
    if "thinking" not in parts or not isinstance(message, AIMessage):
        same = content is message.content
        return message if same else message.model_copy(update={"content": content})
    content = thinking.without_thinking(content)
    if not content and not message.tool_calls:
        return None
    made = [_call(call, ToolNames()) for call in message.tool_calls]
    return _bare(message, content=content, tool_calls=made)


def _is_bare(message: BaseMessage) -> bool:
    """Whether a message holds nothing that servers do not know."""
    return not (message.additional_kwargs or message.response_metadata or message.model_extra)


def _bare(message: M, **fields: Any) -> M:
    """A copy with these fields and nothing that servers do not know."""
    fields |= {"additional_kwargs": {}, "response_metadata": {}}
    copy = message.model_copy(update=fields)
    if copy.model_extra:
        copy.model_extra.clear()
    return copy


def _name(message: BaseMessage, names: ToolNames) -> str | None:
    """Servers want of a speaker's name what they want of a tool's."""
    return None if message.name is None else names.sent(message.name)


def _call(
    call: ToolCall, names: ToolNames, signatures: Mapping[str | None, Any] | None = None
) -> ToolCall:
    """A call with clean arguments and no field beside its own, but for a signature of its id."""
    args, name = clean_json(call["args"]), names.sent(call["name"])
    extras = (signatures or {}).get(call["id"])
    if args is call["args"] and name is call["name"] and len(call) == 4 and extras is None:
        return call
    made = ToolCall(name=name, args=args, id=call["id"], type="tool_call")
    if extras is not None:
        made |= {"extras": extras}  # type: ignore[misc]
    return made


def _mended_call(call: InvalidToolCall, names: ToolNames) -> ToolCall:
    """A broken call in a form that servers take: its arguments if they are an object, else none."""
    args = _object(call["args"] or "")
    return ToolCall(name=names.sent(call["name"] or ""), args=args, id=call["id"], type="tool_call")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return clean_json(value) if isinstance(value, dict) else {}


def _spoken(content: Content, target: Target, *, has_calls: bool) -> tuple[Content, str]:
    """What an assistant has said, in the target's dialect, and its thinking if that goes beside it.

    Texts side by side are one text that a server's answer cut into blocks, so they are joined.
    """
    if isinstance(content, str):
        return (clean_text(content) if content.strip() else ""), ""
    dialect = target.dialect
    beside = thinking.beside(content) if dialect.thinking_back == "reasoning_content" else ""
    kept = [block for block in content if kind(block) not in CALL_BLOCKS]
    kept = thinking.spoken(kept, dialect.thinking_back, has_calls=has_calls)
    if dialect.texts == "joined":
        kept = _as_list(images.text_only(kept))
    if all(kind(block) == "text" for block in kept) and dialect.texts == "joined":
        text = clean_text(_joined(kept))
        return (text if text.strip() else ""), clean_text(beside)
    bare = [{"type": "text", "text": text_of(b)} if kind(b) == "text" else b for b in kept]
    return _blocks([b for b in bare if not is_blank(b)]), clean_text(beside)


def _as_list(content: Content) -> list[Block]:
    return [content] if isinstance(content, str) else content


def _joined(texts: Sequence[Block]) -> str:
    """One text; what was thinking is a paragraph of its own."""
    joined, before = "", False
    for block in texts:
        told = isinstance(block, dict) and thinking.TOLD in block
        gap = "\n\n" if joined and (told or before) else ""
        joined, before = joined + gap + text_of(block), told
    return joined


def _blocks(content: Content) -> Content:
    """Clean content without blank texts, which some servers refuse; an answer's thinking is gone
    already, anyone else's has no place in a request.
    """
    if isinstance(content, str):
        return clean_text(content)
    kept = [block for block in content if not is_blank(block)]
    clean: Content = clean_json(kept)
    return content if clean is kept and len(kept) == len(content) else clean


def _visible(content: Content, target: Target) -> Content:
    """A user's content as the model can see it; texts alone are one string where that is asked."""
    if isinstance(content, str):
        return content
    content = _without_refused(_as_list(thinking.without_thinking(content)), target)
    if target.dialect.texts == "joined" and all(map(is_bare_text, content)):
        return "\n".join(map(text_of, content))
    return content


def _without_refused(content: list[Block], target: Target) -> list[Block]:
    refuses = not target.dialect.images or "images" in target.withheld
    return _as_list(images.without_images(content)) if refuses else content
