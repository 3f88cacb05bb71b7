"""Images where a server does not take them: moved behind the batch, or a line in their place.

What an image block may look like is langchain-core's; how it is written lives in `openai`.
"""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage

from loopwright.providers.wire.blocks import IMAGES, MEDIA, Block, Content, kind, text_of

OMITTED = "[image left out: it cannot be shown here]"
"""What stands for an image that the model or its server does not take."""

HEADING = "What the tool results above show:"
"""The beginning of the message with the images of a batch (S1-06)."""


def without_images(content: Content) -> Content:
    """The content with a line of text for each image; the same object if there is none."""
    if isinstance(content, str) or not any(kind(block) in IMAGES for block in content):
        return content
    return [_omitted() if kind(block) in IMAGES else block for block in content]


def text_only(content: Content) -> Content:
    """The content of an assistant, who shows nothing on a server that takes texts of it only."""
    if isinstance(content, str) or not any(kind(block) in MEDIA for block in content):
        return content
    return [_omitted(kind(block)) if kind(block) in MEDIA else block for block in content]


def parted(content: Sequence[Block], shown: int) -> tuple[list[Block], list[Block]]:
    """A tool's result in text, and what it shows, to be moved; `shown` were moved before it.

    Each text names what it stands for by number: `[image 1: see the next user message]`.
    """
    texts: list[Block] = []
    moved: list[Block] = []
    for block in content:
        if kind(block) in MEDIA:
            label = f"{_noun(kind(block))} {shown + len(moved) // 2 + 1}"
            texts.append(f"[{label}: see the next user message]")
            moved += [{"type": "text", "text": f"{label}:"}, block]
        elif kind(block) == "text":
            texts.append(text_of(block))
        else:
            texts.append(json.dumps(block, ensure_ascii=False, sort_keys=True, default=str))
    return texts, moved


def batch_message(moved: Sequence[Block]) -> HumanMessage:
    """The message that shows what the results of a batch cannot hold. It is in no ledger."""
    content: list[Any] = [{"type": "text", "text": HEADING}, *moved]
    return HumanMessage(content)


def _omitted(name: str = "image") -> dict[str, Any]:
    return {"type": "text", "text": OMITTED.replace("image", _noun(name), 1)}


def _noun(name: str) -> str:
    return name.removeprefix("input_").removesuffix("_url")
