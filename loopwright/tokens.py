"""How many tokens a text or a message comes to, roughly and without a tokenizer.

Tokenizers download their tables; this counts pieces of text as they would cut them. Where a
provider has counted, its numbers are used: `providers.estimates` fills in what is missing.
"""

import json
import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

IMAGE_TOKENS = 1_000
"""What a picture is taken for, whatever its bytes; a picture of a million pixels costs about so."""

MESSAGE_TOKENS = 4
"""What the frame of a message costs: its role and its ends."""

# Each match is one token: words in parts of some letters, numbers by three digits, an indented line
# break, other signs by two, letters of two bytes by two, everything else one by one. The blank in
# front of a word belongs to it.
_PIECES = re.compile(
    r"[A-Z]?[a-z]{1,7}|[A-Z]{1,3}|[0-9]{1,3}|[\r\n]+[ \t]{0,16}|[ \t]{2,16}|[!-/:-@\[-`{-~]{1,2}"
    r"|[\x80-\u07ff]{1,2}|[^\x00-\u07ff]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
# What is worth one token more: half-width kana, emoji and other signs outside the first plane; rare
# ideographs are there three times, as they are cut into their bytes.
_HEAVY = re.compile(r"[\uff61-\uffdc\U00010000-\U0010ffff]")
_RARE_IDEOGRAPHS = re.compile(r"[\U00020000-\U0003ffff]")

_IMAGES = ("image", "image_url", "input_image")


def text_tokens(text: str) -> int:
    """Tokens of a text: 0 for an empty one, at least 1 for any other."""
    if not text:
        return 0
    pieces = len(_PIECES.findall(text)) + len(_HEAVY.findall(text))
    return max(pieces + 2 * len(_RARE_IDEOGRAPHS.findall(text)), 1)


def message_tokens(message: BaseMessage) -> int:
    """Tokens of a message in a request: its text, its calls with their arguments, its pictures."""
    return MESSAGE_TOKENS + content_tokens(message)


def content_tokens(message: BaseMessage) -> int:
    """Tokens of what a message says, without its frame: what a model had to write for it."""
    content: Any = message.content
    blocks = [content] if isinstance(content, str) else content
    counted = sum(_block_tokens(block) for block in blocks)
    if isinstance(message, AIMessage):
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            counted += text_tokens(call["name"] or "") + _value_tokens(call["args"])
    return counted


def schema_tokens(schema: Any) -> int:
    """Tokens of a JSON value, such as the schema of a tool."""
    return _value_tokens(schema)


def _block_tokens(block: Any) -> int:
    """Tokens of a content block. Calls in the content are told by the message's own list too."""
    if not isinstance(block, dict):
        return text_tokens(str(block))
    kind = block.get("type")
    if kind in _IMAGES:
        return IMAGE_TOKENS
    if kind in ("tool_use", "tool_call", "function_call"):
        return 0
    texts = [block.get(name) for name in ("text", "reasoning", "thinking")]
    found = [text for text in texts if isinstance(text, str)]
    return sum(map(text_tokens, found)) if found else _value_tokens(block)


def _value_tokens(value: Any) -> int:
    if isinstance(value, str):
        return text_tokens(value)
    return text_tokens(json.dumps(value, ensure_ascii=False, default=str))
