"""What DeltaChannels still need of deleted checkpoints: their writes, back to a stored value.

LangGraph says in the metadata which channels those are: it counts their updates since the last
snapshot. What is left of a checkpoint is out of sight of every reader but the one that rebuilds.
"""

import json
from collections.abc import Iterable, Mapping

from loopwright.state.bodies import TYPE, replaced
from loopwright.state.branches import Place
from loopwright.state.pending import PACKED, entries
from loopwright.state.reading import PAST, Reading, Stored

Needs = Mapping[str, set[str]]
"""For each checkpoint of which something is needed, its channels."""

_KEY = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_REDUCE = f"UPDATE checkpoints SET checkpoint = ?, metadata = ? {_KEY}"
_LINK = f"UPDATE checkpoints SET parent_checkpoint_id = ? {_KEY}"
_OTHER_WRITES = (
    f"DELETE FROM writes {_KEY} AND idx != {PACKED} AND channel NOT IN"
    " (SELECT value FROM json_each(?))"
)


def needed(reading: Reading, stored: Mapping[str, Stored], kept: Iterable[str]) -> Needs:
    """What the kept checkpoints need of their ancestors: as far up as a channel has no value."""
    needs: dict[str, set[str]] = {}
    for id in kept:
        row = stored[id]
        counted = json.loads(row.metadata or b"{}").get("counters_since_delta_snapshot")
        if not counted:
            continue
        own = reading.body(row)
        missing = {channel for channel in counted if channel in own.versions} - own.valued
        walked = {id}
        while missing and row.parent and row.parent in stored and row.parent not in walked:
            row = stored[row.parent]
            walked.add(row.id)
            needs.setdefault(row.id, set()).update(missing)
            missing = missing - reading.body(row).valued
    return needs


def chain(
    reading: Reading, place: Place, stored: Mapping[str, Stored], newest: str
) -> dict[str, set[str]]:
    """What the newest checkpoint needs, nearest first, without those that have nothing for it."""
    chained: dict[str, set[str]] = {}
    for id, channels in needed(reading, stored, [newest]).items():
        wrote = {entry.channel for entry in entries(reading.cursor, place, id, reading.serde)}
        if channels & (wrote | reading.body(stored[id]).valued):
            chained[id] = channels
    return chained


def link(reading: Reading, place: Place, newest: str, needs: Needs) -> None:
    """Make the checkpoints of which something is needed each other's parents."""
    below = newest
    for id in needs:
        reading.cursor.execute(_LINK, (id, *place, below))
        below = id
    if needs:
        reading.cursor.execute(_LINK, (None, *place, below))


def reduce(reading: Reading, place: Place, row: Stored, channels: set[str]) -> None:
    """Leave of a checkpoint what these channels need."""
    body = row.body
    if row.kind == TYPE:
        slots = {name: slot for name, slot in reading.body(row).slots.items() if name in channels}
        body = replaced(reading.cursor, reading.shapes, body, slots)
    reading.cursor.execute(_REDUCE, (body, PAST.encode(), *place, row.id))
    names = json.dumps(sorted(channels))
    reading.cursor.execute(_OTHER_WRITES, (*place, row.id, names))
