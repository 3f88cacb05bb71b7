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

    def unedited(self, items: Sequence[Any], shared: int, serde: SerializerProtocol) -> int:
        """How many of the shared elements still have the content that was stored.

        Only those whose content is held are compared: an edit further up is not noticed.
        """
        first = len(self.elements) - len(self.tail)
        for at in range(first, shared):
            if serde.dumps_typed(items[at]) != self.tail[at - first]:
                return at
        return shared

    def tail_at(self, length: int) -> tuple[Typed, ...]:
        """What is held of the content of the elements just before `length`."""
        return self.tail[: max(0, len(self.tail) - len(self.elements) + length)]


def common(stored: Sequence[Typed], items: Sequence[Any], serde: SerializerProtocol) -> int:
    """How many elements at the start of `items` have the stored content."""
    pairs = zip(stored, items, strict=False)
    alike = (serde.dumps_typed(item) == (kind, body) for (kind, body), item in pairs)
    return next((at for at, same in enumerate(alike) if not same), min(len(stored), len(items)))
