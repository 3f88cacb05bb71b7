"""The parts of a chunk's content: text, thinking, and what else a model may send.

Every spelling of a provider is known here and only here; what becomes of a part is `assembly`'s.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage

from loopwright.text import clean_json

_TEXT = {"text": "text", "output_text": "text", "text_delta": "text", "refusal": "refusal"}
"""Block type of a text: the key that holds it."""

_THINKING = {
    "reasoning": "reasoning",  # langchain-core's standard block
    "thinking": "thinking",  # Anthropic, Mistral
    "reasoning_content": "reasoning_content",  # Bedrock, nested
}
_REPEATED_CALLS = frozenset(
    {
        "tool_call",
        "tool_call_chunk",
        "invalid_tool_call",
        "tool_use",
        "input_json_delta",
        "function_call",
    }
)
"""Calls shown in the content once more: the chunk's own list of calls has them."""

_NEVER_KEPT = frozenset({"type", "index", "extras", "text", "summary", "content", *_THINKING})


@dataclass(frozen=True)
class Part:
    """A piece of one block. Parts of the same kind and `key` in a row belong to the same block.

    `fields` are a thinking block's signature, id or encrypted form, or the whole of a block of
    another kind.
    """

    kind: Literal["text", "thinking", "other"]
    text: str = ""
    key: Any = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no block need begin for it."""
        return not self.text and not self.fields


def parts(message: AIMessage) -> Iterator[Part]:
    """The parts of a chunk in order, thinking that came beside the content first."""
    beside = message.additional_kwargs.get("reasoning_content")
    if isinstance(beside, str) and beside:
        yield Part("thinking", beside)
    if isinstance(message.content, str):
        if message.content:
            yield Part("text", message.content)
        return
    for block in message.content:
        if isinstance(block, str):
            yield Part("text", block)
        elif (part := _part(block)) is not None:
            yield part


def _part(block: dict[str, Any]) -> Part | None:
    kind = block.get("type")
    if kind in _REPEATED_CALLS:
        return None
    if kind in _TEXT:
        return Part("text", str(block.get(_TEXT[kind]) or ""), block.get("index"))
    if kind in _THINKING:
        fields = {**block.get("extras", {}), **block}
        kept = {key: clean_json(value) for key, value in fields.items() if key not in _NEVER_KEPT}
        return Part("thinking", thought(block), block.get("index"), kept)
    return Part("other", key=block.get("index"), fields=clean_json(dict(block)))


def thought(block: dict[str, Any]) -> str:
    """The text of a thinking block, wherever the provider puts it."""
    for key in (*_THINKING.values(), "text", "summary", "content"):
        value = block.get(key)
        if isinstance(value, dict):
            value = value.get("text")
        if isinstance(value, list):
            value = "".join(str(item.get("text") or "") for item in value if isinstance(item, dict))
        if isinstance(value, str) and value:
            return value
    return ""
