"""What the project promises about speed and storage, held against measured figures.

A claim is a figure and its bound; how the figures are measured is in `measuring` and `growth`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.growth import LongThread
from benchmarks.measuring import Figures

Medians = Mapping[int, Mapping[str, Figures]]
"""For each number of turns the figures of each contender that was measured."""


@dataclass(frozen=True)
class Claim:
    """A figure that is promised to be at most (or at least) so much."""

    text: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        word = "reached    " if self.reached else "NOT REACHED"
        sign = ">=" if self.at_least else "<="
        return f"{word}  {self.value:9.4g} {sign} {self.bound:<8.4g} {self.text}"


_OF_TIME = (
    ("ours", "create_agent", 1000, 0.28),
    ("ours", "floor_sqlite", 1000, 4.5),
    ("ours", "create_agent", 200, 0.75),
    ("ours_unsafe", "create_agent", 1000, 0.40),
)


def of_time(medians: Medians) -> Iterator[Claim]:
    """What can be said of the milliseconds per turn, as far as it was measured."""
    for name, other, turns, bound in _OF_TIME:
        found = medians.get(turns, {})
        if {name, other} <= found.keys():
            ratio = found[name].mean / found[other].mean
            yield Claim(f"{turns:,} turns, mean ms per turn: {name} / {other}", ratio, bound)
    if ours := medians.get(1000, {}).get("ours"):
        growth = ours.last / ours.first
        yield Claim("1,000 turns, ms per turn of ours: last / first", growth, 1.6)


def of_storage(medians: Medians) -> Iterator[Claim]:
    """What can be said of the bytes at 1,000 turns, if both were measured."""
    found = medians.get(1000, {})
    if {"ours", "create_agent"} <= found.keys():
        ratio = found["ours"].bytes / found["create_agent"].bytes
        yield Claim("1,000 turns, database bytes: ours / create_agent (1/150)", ratio, 1 / 150)


def of_growth(short: float, long: LongThread) -> Iterator[Claim]:
    """What can be said of a thread of 5,000 turns, given the bytes of one of 1,000."""
    yield Claim("database bytes of ours: 5,000 turns / 1,000 turns", long.bytes / short, 5.5)
    text = f"cold load of {long.messages:,} messages / SELECT and decode of the same rows"
    yield Claim(f"{text} ({long.load:.0f} / {long.bare:.0f} ms)", long.load / long.bare, 2.0)


def of_rewrites(few: float, many: float) -> Claim:
    """What can be said of runs that begin with a rewrite of the tail: five times as many."""
    text = "bytes of 1,000 runs that each begin with a rewrite of the tail / of 200 such runs"
    return Claim(text, many / few, 5.5)
