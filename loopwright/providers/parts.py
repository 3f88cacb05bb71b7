"""The parts of a request that can be left out if a server refuses them, and where they stand.

That they are left out (`ModelRequest.withheld`) is the wire's doing.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.errors import RequestPart
from loopwright.providers.wire.blocks import IMAGES, kind

_BLOCKS: dict[RequestPart, frozenset[str]] = {
    "images": IMAGES,
    "thinking": frozenset({"reasoning", "reasoning_content", "redacted_thinking", "thinking"}),
}


def holds(messages: Sequence[AnyMessage], part: RequestPart) -> bool:
    """Whether such a part is sent with these messages, so that a request without it would be
    another one. What stands before an answer that it was withheld for is not sent with it.
    """
    for message in reversed(messages):
        if _has(message, part):
            return True
        if part in message.response_metadata.get("withheld", ()):
            return False
    return False


def _has(message: AnyMessage, part: RequestPart) -> bool:
    blocks = message.content if isinstance(message.content, list) else []
    aside = isinstance(message, AIMessage) and "reasoning_content" in message.additional_kwargs
    return any(kind(b) in _BLOCKS[part] for b in blocks) or (part == "thinking" and aside)
