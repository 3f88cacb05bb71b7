"""What this process remembers of a list that it stored or read, and how a later one continues it.

How the rows are stored is said in `branches`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from loopwright.state.branches import Ref, Typed


@dataclass(frozen=True)
class HeldList:
    """A stored list: its elements as objects, and the last ones of them as they were stored."""

    branch: int
    elements: tuple[Any, ...]
    tail: tuple[Typed, ...]

    @property
    def ref(self) -> Ref:
        return Ref(self.branch, len(self.elements))

    def shared(self, items: Sequence[Any]) -> int:
        """How many elements at the start of `items` are the very objects held here."""
        if not self.elements or self.elements[0] is not items[0]:
            return 0
        if all(map(is_, self.elements, items)):
            return min(len(self.elements), len(items))
        pairs = zip(self.elements, items, strict=False)
        return next(at for at, (mine, theirs) in enumerate(pairs) if mine is not theirs)


def unedited(
    stored: Sequence[Typed], items: Sequence[Any], end: int, serde: SerializerProtocol
) -> int:
    """How many elements of `items` below `end` still have their content, `stored` being that of the
    last of them. Those before are not compared: an edit further up is not noticed."""
    first = end - len(stored)
    for at, typed in enumerate(stored, first):
        if serde.dumps_typed(items[at]) != typed:
            return at
    return end


def common(stored: Sequence[Typed], items: Sequence[Any], serde: SerializerProtocol) -> int:
    """How many elements at the start of `items` have the stored content."""
    pairs = zip(stored, items, strict=False)
    alike = (serde.dumps_typed(item) == (kind, body) for (kind, body), item in pairs)
    return next((at for at, same in enumerate(alike) if not same), min(len(stored), len(items)))
