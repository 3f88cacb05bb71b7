"""Content blocks as they are stored: what kind a block is, and the text in it."""

from typing import Any

Block = str | dict[Any, Any]
Content = str | list[Block]

IMAGES = frozenset({"image", "image_url", "input_image"})
MEDIA = IMAGES | {"audio", "input_audio", "video", "file", "input_file"}


def kind(block: Block) -> str:
    """The block's type; a bare string is a text."""
    return "text" if isinstance(block, str) else str(block.get("type"))


def text_of(block: Block) -> str:
    """The text of a text block."""
    return block if isinstance(block, str) else str(block.get("text") or "")


def is_blank(block: Block) -> bool:
    """Whether a block is a text that says nothing, which some servers refuse."""
    return kind(block) == "text" and not text_of(block).strip()


def is_bare_text(block: Block) -> bool:
    """Whether a block is a text and nothing else, so that a string can stand for it."""
    return kind(block) == "text" and (isinstance(block, str) or not block.keys() - _OF_A_TEXT)


_OF_A_TEXT = {"type", "text", "id", "index", "annotations"}
