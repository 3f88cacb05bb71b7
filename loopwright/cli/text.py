"""Text on its way to a terminal: what a model, a tool or a file wrote, made harmless and short.

Where it is printed lives in `screen`.
"""

import re
from typing import Any

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves, erasing
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links, clipboard
    r"|\x1b[P^_X][^\x1b]*\x1b\\"  # device strings
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]"  # direction and line tricks
)


def clean(text: str) -> str:
    """The text without terminal sequences and control characters; line feeds and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def one_line(text: str, width: int = 100) -> str:
    """The text, clean, on one line and cut to `width` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."


def call_text(name: str, arguments: Any) -> str:
    """A tool call as one line: `read_file(path='README.md')`."""
    if isinstance(arguments, dict):
        inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    else:
        inside = repr(arguments)
    return one_line(f"{name}({inside})")


def plain_text(content: Any) -> str:
    """The text of a message's or result's content; what is no text is named by its type."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(_block_text(block) for block in blocks)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        return str(block["text"]) if "text" in block else f"[{block.get('type', 'content')}]"
    return str(block)


def decoded(argument: str) -> str:
    """A command line argument as valid Unicode: bytes that are none become U+FFFD."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
