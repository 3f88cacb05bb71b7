"""Thinking on the wire: a model's own goes back to it, another's is dropped or told as text.

How thinking is read from an answer lives in `content`; both keep to S1-20 and K23.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage

from loopwright.providers.content import thought
from loopwright.providers.dialect import ThinkingBack
from loopwright.providers.wire.blocks import Block, Content, kind
from loopwright.providers.wire.target import Producer, Target
from loopwright.state.messages import ABORTED, ERROR, stop_reason

THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})

BESIDE = "reasoning_content"
"""Key beside a message's content, and the field of servers that take thinking there."""

TOLD = "told"
"""Key of a text block that was thinking: it is no part of the sentence beside it."""


def is_own(message: AIMessage, target: Target) -> bool:
    """Whether the target is given the thinking of this answer back.

    It has to have made it itself: provider, protocol and model. An answer that broke off was not
    signed to its end.
    """
    return (
        target.producer is not None
        and Producer.of(message) == target.producer
        and "thinking" not in target.withheld
        and stop_reason(message) not in (ERROR, ABORTED)
    )


def signatures(message: AIMessage, target: Target) -> dict[str | None, Any]:
    """What signs the calls of an answer, by call id, if the target is given it back.

    It stands in the blocks that repeat the calls: a call itself has no place for it.
    """
    if target.dialect.thinking_back != "standard" or not is_own(message, target):
        return {}
    blocks = message.content if isinstance(message.content, list) else []
    return {
        block.get("id"): block["extras"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "tool_call" and block.get("extras")
    }


def permitted(message: AIMessage, target: Target) -> Content:
    """The content of an answer without what the target may not see of its thinking."""
    content = _with_beside(message)
    if isinstance(content, str):
        return content
    if is_own(message, target):
        return content
    as_text = target.foreign_thinking == "text" and "thinking" not in target.withheld
    kept: list[Block] = []
    for block in content:
        if kind(block) not in THINKING_BLOCKS:
            kept.append(block)
        elif as_text and (text := _told(block)):
            kept.append({"type": "text", "text": text, TOLD: True})
    return kept


def _told(block: Block) -> str:
    """The thinking that can be read; empty for what is blank or encrypted."""
    if isinstance(block, str) or kind(block) == "redacted_thinking" or block.get("redacted"):
        return ""
    text = thought(block)
    return text if text.strip() else ""


def _with_beside(message: AIMessage) -> Content:
    """The content, behind the thinking that other programs store beside it."""
    beside = message.additional_kwargs.get(BESIDE)
    if not isinstance(beside, str) or not beside:
        return message.content
    content = message.content
    rest = [content] if isinstance(content, str) else content
    return [{"type": "reasoning", "reasoning": beside}, *(block for block in rest if block)]


def spoken(content: Sequence[Block], form: ThinkingBack | None, *, has_calls: bool) -> list[Block]:
    """The blocks with the thinking in the form that a protocol takes.

    Servers refuse thinking that nothing follows, so it is not sent without its answer.
    """
    made = [_spoken(block, form) if _is_thinking(block) else block for block in content]
    kept = [block for block in made if block is not None]
    if form == "standard":
        return kept
    while kept and not has_calls and _is_thinking(kept[-1]):
        kept.pop()
    return kept


def beside(content: Sequence[Block]) -> str:
    """The text of all thinking, for servers that take it in a field beside the content."""
    return "\n\n".join(
        text for b in content if isinstance(b, dict) and _is_thinking(b) and (text := thought(b))
    )


def without_thinking(content: Content) -> Content:
    """The content without thinking in any form."""
    if isinstance(content, str):
        return content
    kept = [block for block in content if not _is_thinking(block)]
    return content if len(kept) == len(content) else kept


def _is_thinking(block: Block) -> bool:
    return kind(block) in THINKING_BLOCKS


def _spoken(block: Any, form: ThinkingBack | None) -> Block | None:
    if form == "standard":
        return dict(block)
    fields = {**block.get("extras", {}), **block}
    if form == "anthropic":
        return _of_anthropic(fields)
    return _of_responses(fields) if form == "responses" else None


def _of_anthropic(fields: dict[str, Any]) -> Block | None:
    if fields["type"] == "redacted_thinking":
        return {"type": "redacted_thinking", "data": fields.get("data")}
    signature = fields.get("signature")
    if not signature:
        return None
    return {"type": "thinking", "thinking": thought(fields), "signature": signature}


def _of_responses(fields: dict[str, Any]) -> Block | None:
    """An item of the responses API; one that the server can neither find nor decipher is none."""
    known = {key: fields[key] for key in ("id", "encrypted_content") if fields.get(key)}
    if not known:
        return None
    text = thought(fields)
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", **known, "summary": summary}
