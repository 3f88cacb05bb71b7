"""One question as a rule sees it, and the reply that a rule gives.

Which rule a question gets is decided in `rules`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.providers.offline.transcript import Call, Exchange, Step

_QUOTES = " `\"'\u201c\u201d\u2018\u2019"


@dataclass(frozen=True)
class Reply:
    """What the model says, and the tools it calls; no calls end the turn."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Ask:
    """One question with everything a rule may look at."""

    found: re.Match[str]
    steps: Sequence[Step]
    earlier: Sequence[Exchange]
    offered: set[str]

    @property
    def name(self) -> str:
        """The file or word in the question, without quotes and final punctuation."""
        return self.found["name"].strip(_QUOTES).rstrip("?!").strip(_QUOTES)
