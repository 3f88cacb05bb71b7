"""What is killed when in one round: chosen by its seed, so that a round can be played again.

How a process is killed at such a place is the `worker`'s; how often what is done, `__main__`'s.
"""

import random
from dataclasses import dataclass, replace
from typing import get_args

from loopwright.failpoints import Place
from tests.chaos.worker import Entry

PLACES: tuple[Place, ...] = get_args(Place)
ENTRIES: tuple[Entry, ...] = get_args(Entry)

_LATEST: dict[Place, int] = {"model": 12, "put": 10, "before_effect": 4, "after_effect": 4}
_LATEST |= {"journal": 5, "drain": 2}
"""Up to which passing of a place a worker may live; where nothing is said it dies at the first."""


@dataclass(frozen=True)
class Kill:
    """One kill of a worker."""

    place: Place | None
    """None: at an instant that has nothing to do with what the worker does."""

    then: Entry
    """How the worker begins that comes behind it."""

    passing: int = 1
    instant: float = 0.0
    """As a share of the time that a worker takes which nobody kills."""

    @property
    def name(self) -> str:
        """What the kill is counted under."""
        return self.place or "any instant"

    def sooner(self) -> "Kill":
        """The same for a worker that has to try again, because it came to its end alive."""
        return replace(self, passing=1, instant=self.instant / 2)


def kills(seed: int, instants: int) -> list[Kill]:
    """At least one at every place, and so many at other instants, in an order of the seed's."""
    chance = random.Random(seed)
    order: list[Place | None] = [*PLACES, *[None] * instants]
    chance.shuffle(order)
    found: list[Kill] = []
    for place in order:
        if place == "repair":
            # A call without a result is what a run that does not resume has to repair.
            found.append(Kill("after_effect", chance.choice(["prompt", "continue"])))
        found.append(_kill(place, seed, chance))
    return found


def _kill(place: Place | None, seed: int, chance: random.Random) -> Kill:
    """Behind a place each way to begin comes in turn, from one seed to the next."""
    if place is None:
        return Kill(None, chance.choice(ENTRIES), instant=chance.random())
    then = ENTRIES[(seed + PLACES.index(place)) % len(ENTRIES)]
    return Kill(place, then, chance.randint(1, _LATEST.get(place, 1)))
