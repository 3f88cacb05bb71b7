"""What slots refer to: how much of which lists, and which stored values.

What a slot is, is said in `slots`; who follows the references, in `copying` and `retention`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from loopwright.state.bodies import parse
from loopwright.state.pending import packed_writes
from loopwright.state.reading import Reading
from loopwright.state.slots import Slot, rows_of


@dataclass(frozen=True)
class References:
    """The length up to which each branch is referred to, and the numbers of values."""

    ends: dict[int, int] = field(default_factory=dict)
    values: set[int] = field(default_factory=set)


def references(slots: Iterable[Slot]) -> References:
    """What these slots refer to themselves; what lies below a fork is its branch's."""
    found = References()
    for slot in slots:
        rows = rows_of(slot)
        if rows is not None:
            found.ends[rows.branch] = max(found.ends.get(rows.branch, 0), rows.length)
        elif isinstance(slot, int):
            found.values.add(slot)
    return found


def of_thread(reading: Reading, thread: str) -> References:
    """What the checkpoints and writes of a thread refer to."""
    slots: list[Slot] = []
    for _, row in reading.ours(thread):
        slots += reading.body(row).slots.values()
    for *_, packed in packed_writes(reading.cursor, thread):
        slots += [slot for _, slot in parse(packed)]
    return references(slots)
