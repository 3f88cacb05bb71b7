"""What a server's form of OpenAI's chat completions differs in: one value per row of the table.

Which server speaks which one is said in the table; the messages are brought into it by `wire`.
"""

from dataclasses import dataclass
from typing import Literal

ThinkingBack = Literal["standard", "anthropic", "responses", "reasoning_content"]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How requests are written. The defaults are taken by every server that we know of, so they are
    also what a model object without a row of its own gets."""

    thinking_back: ThinkingBack | None = None
    """How a model is given its own thinking back (S1-20): as langchain-core's standard blocks, as
    Anthropic or OpenAI's responses API sign it, or in the field `reasoning_content`; None: it never
    leaves."""

    texts: Literal["joined", "blocks"] = "joined"
    """Whether content of texts alone is sent as one string, or as the blocks that it is stored as.
    With `joined`, an assistant's content is text only."""

    null_content: bool = True
    """Whether an assistant message with calls and no text has the content null; else it is empty
    text. Kept by models that are made by name."""

    images: bool = True
    """Whether the model takes images; else a line of text stands for each."""

    image_results: bool = False
    """Whether a tool's message may hold images; else they follow the batch as a user message
    (S1-06)."""

    schemas: Literal["simple", "full"] = "simple"
    """Whether tool schemas are reduced to what strict servers take, or go out as they are.
    Arguments are always checked against the original."""

    cache_key: int | None = None
    """Longest `prompt_cache_key` in characters; None: the server is sent none (S1-21)."""

    cache_control: bool = False
    """Whether the end of each request is marked as a beginning worth keeping (Anthropic)."""


GENERIC = Dialect()
"""What any OpenAI-compatible server takes."""
