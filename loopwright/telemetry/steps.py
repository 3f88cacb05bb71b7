"""What observers hear: a step of a run, when it begins and when it ends, and the interfaces for it.

Who makes steps of a run is `recording`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


@dataclass
class Step:
    """Something that a run does. Times are Unix seconds.

    `type` is run, turn, model, tool, message, abort, or the type of an event that tells a moment
    (compaction, retry, ...), whose beginning is not told. `data` grows at the end; its messages are
    langchain's and must not be changed. `turn` is 0 before the first.
    """

    type: str
    run: str
    thread: str
    began: float
    data: dict[str, Any]
    turn: int
    ended: float | None = None

    @property
    def over(self) -> float:
        """When it ended; while it goes on, when it began."""
        return self.began if self.ended is None else self.ended

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it goes on."""
        return max(self.over - self.began, 0.0)


class StepListener:
    """Hears the steps of one run, in the event loop: it must not block. Every method may be left
    as it is here.
    """

    def begun(self, step: Step) -> None:
        """A step has begun."""

    def ended(self, step: Step) -> None:
        """A step has ended, or a moment has passed."""

    def within(self, step: Step) -> AbstractContextManager[object]:
        """Entered around the body of a tool."""
        return nullcontext()

    def keep_secret(self, values: Sequence[str]) -> None:
        """These are keys: nothing that is written down may hold them."""

    async def settled(self) -> None:
        """Return when everything told so far has reached its place."""
