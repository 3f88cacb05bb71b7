"""A plan: its steps, which of them are done, and whether it is only changed and not followed.

Pure; how a model makes one and sees it is in `planning`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Drift = Literal["idle_revisions", "too_many_revisions"]

_MARK = re.compile(r"\[Step\s+(\d{1,9})\s+done\]", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`done` are numbers of steps, from 1, in the order in which they were marked."""

    steps: tuple[str, ...] = ()
    done: tuple[int, ...] = ()
    revisions: int = 0
    idle: int = 0
    """Revisions in a row without a tool's success since the plan or revision before."""

    progress: bool = False
    """Whether a tool has succeeded since the last plan or revision."""

    invalid_marks: int = 0
    drift: Drift | None = None

    def revised(self, steps: Sequence[str], *, most_idle: int, most: int) -> "Plan":
        """The plan with other steps; marks of steps that it no longer has are dropped. More than
        `most_idle` idle revisions in a row, or more than `most` in all, is drift.
        """
        idle, revisions = 0 if self.progress else self.idle + 1, self.revisions + 1
        drift: Drift | None = self.drift
        if idle > most_idle:
            drift = drift or "idle_revisions"
        elif revisions > most:
            drift = drift or "too_many_revisions"
        return replace(
            self,
            steps=tuple(steps),
            done=tuple(step for step in self.done if step <= len(steps)),
            revisions=revisions,
            idle=idle,
            progress=False,
            drift=drift,
        )

    def worked(self) -> "Plan":
        """A tool has succeeded."""
        return replace(self, progress=True)

    def marked(self, step: int) -> "Plan":
        """A step is said to be done. A mark of a missing or finished step is counted and ignored;
        marks alone are no progress.
        """
        if not 1 <= step <= len(self.steps) or step in self.done:
            return replace(self, invalid_marks=self.invalid_marks + 1)
        return replace(self, done=(*self.done, step))

    @property
    def is_done(self) -> bool:
        """Whether every step is."""
        return len(self.done) == len(self.steps)

    def carried(self) -> "Plan | None":
        """The plan as the next run starts with it: what was counted was that run's."""
        return None if self.is_done else Plan(steps=self.steps, done=self.done)

    def lines(self) -> str:
        """The steps, numbered, one a line; finished ones say so."""
        return "\n".join(
            f"{n}. {step}{' (done)' if n in self.done else ''}"
            for n, step in enumerate(self.steps, 1)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives an equal plan back."""
        return {**asdict(self), "steps": list(self.steps), "done": list(self.done)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The plan of its JSON form."""
        return cls(**{**data, "steps": tuple(data["steps"]), "done": tuple(data["done"])})


def marks(text: str) -> list[int]:
    """The steps that a text marks as done: `[Step 2 done]`."""
    return [int(number) for number in _MARK.findall(text)]
