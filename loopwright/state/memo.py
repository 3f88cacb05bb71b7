"""What this process remembers of the checkpoints it stored and read, within bounds.

Only a short cut: whatever is missing here is read from the file.
"""

from collections import OrderedDict
from collections.abc import Iterable

from loopwright.state.branches import Place
from loopwright.state.slots import Held

PLACES = 2048
"""How many threads and namespaces are remembered."""
ELEMENTS = 50_000
"""How many elements of their lists are, altogether; the last used place always is."""


class Memo:
    """For each place the last checkpoint written and the last one read. Not thread-safe."""

    def __init__(self, places: int = PLACES, elements: int = ELEMENTS) -> None:
        self._places, self._elements = places, elements
        self._held: OrderedDict[Place, tuple[Held | None, Held | None]] = OrderedDict()
        self._size = 0
        self._removals: int | None = None

    def check(self, removals: int) -> None:
        """Forget everything if rows were deleted, by whomever, since it was remembered."""
        if removals != self._removals:
            self.forget()
            self._removals = removals

    def removed(self, removals: int, threads: Iterable[str]) -> None:
        """This process deleted something of these threads: only they are forgotten."""
        self._removals = removals
        for thread in threads:
            self.forget(thread)

    def held(self, place: Place) -> tuple[Held, ...]:
        """What is remembered of a place, what was written first."""
        return tuple(held for held in self._held.get(place, ()) if held is not None)

    def wrote(self, place: Place, held: Held) -> None:
        """Remember a checkpoint that was stored."""
        self._put(place, held, self._held.get(place, (None, None))[1])

    def read(self, place: Place, held: Held) -> None:
        """Remember a checkpoint that was read."""
        self._put(place, self._held.get(place, (None, None))[0], held)

    def forget(self, thread: str | None = None) -> None:
        """Forget a thread, or everything."""
        for place in [place for place in self._held if thread in (None, place.thread)]:
            self._drop(place)

    def _put(self, place: Place, written: Held | None, read: Held | None) -> None:
        self._drop(place)
        self._held[place] = (written, read)
        self._size += _size(written) + _size(read)
        while len(self._held) > 1 and (
            len(self._held) > self._places or self._size > self._elements
        ):
            self._drop(next(iter(self._held)))

    def _drop(self, place: Place) -> None:
        written, read = self._held.pop(place, (None, None))
        self._size -= _size(written) + _size(read)


def _size(held: Held | None) -> int:
    return sum(len(known.elements) for known in held.lists.values()) if held else 0
