"""The size of a tool result: text that is too long is cut, and says so.

How large it may be is a limit of the run; files and searches have bounds of their own.
"""

from dataclasses import replace
from typing import Any

from loopwright.tools.contract import Content, ToolResult


def bounded(result: ToolResult, most: int | None, marker: str) -> ToolResult:
    """The result with at most this many code points of text, the marker that ends it included.

    Blocks that are no text stay as they are. `most` None means no bound.
    """
    if most is None or _size(result.content) <= most:
        return result
    return replace(result, content=_cut(result.content, most, marker))


def _size(content: Content) -> int:
    return len(content) if isinstance(content, str) else sum(len(_text(b)) for b in content)


def _cut(content: Content, most: int, marker: str) -> Content:
    left = max(most - len(marker), 0)
    if isinstance(content, str):
        return (content[:left] + marker)[:most]
    kept: list[str | dict[str, Any]] = []
    for block in content:
        text = _text(block)
        if not text:
            kept.append(block)
        elif left > 0:
            kept.append(_with_text(block, text[:left]))
            left -= len(text[:left])
    return [*kept, {"type": "text", "text": marker[:most]}]


def _text(block: str | dict[str, Any]) -> str:
    if isinstance(block, str):
        return block
    return str(block.get("text", "")) if block.get("type") == "text" else ""


def _with_text(block: str | dict[str, Any], text: str) -> str | dict[str, Any]:
    return text if isinstance(block, str) else {**block, "text": text}
