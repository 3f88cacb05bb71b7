"""Copies and forks of threads: they share the rows that are there, and go on in rows of their own.

What the rows mean is said in `branches`, `slots` and `pending`; who deletes shared ones, and when,
in `retention`.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping

from loopwright.state import branches
from loopwright.state.bodies import dump, parse, replaced
from loopwright.state.branches import Place, Ref
from loopwright.state.journal import JOURNAL
from loopwright.state.pending import PACKED, packed_writes
from loopwright.state.reading import Reading, Stored
from loopwright.state.references import References, of_thread, references
from loopwright.state.slots import Slot

_ANY = "SELECT 1 FROM checkpoints WHERE thread_id = ? LIMIT 1"
_KEY = " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_BODY = f"UPDATE checkpoints SET checkpoint = ?{_KEY}"
_PACKED = f"UPDATE writes SET value = ?{_KEY} AND task_id = ? AND idx = {PACKED}"
_BRANCH = "SELECT namespace, channel FROM loopwright_branches WHERE branch = ?"
_COPY_VALUE = (
    "INSERT OR IGNORE INTO loopwright_values (thread, hash, type, body)"
    " SELECT ?, hash, type, body FROM loopwright_values WHERE id = ?"
)
_COPIED_VALUE = (
    "SELECT copy.id FROM loopwright_values AS copy JOIN loopwright_values AS value"
    " ON copy.hash = value.hash WHERE copy.thread = ? AND value.id = ?"
)
_CHECKPOINT = (
    "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,"
    " checkpoint, metadata) VALUES (?, ?, ?, NULL, ?, ?, ?)"
)
_CHECKPOINTS = (
    "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
    " parent_checkpoint_id, type, checkpoint, metadata) SELECT ?, checkpoint_ns,"
    " checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = ?"
)
_WRITES = (
    "INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id,"
    " task_path, idx, channel, type, value) SELECT ?, checkpoint_ns, checkpoint_id, task_id,"
    " task_path, idx, channel, type, value FROM writes WHERE thread_id = ?"
)
_JOURNAL = (
    "INSERT INTO loopwright_log (thread, kind, body) SELECT ?, kind, body FROM loopwright_log"
    f" WHERE thread = ? AND kind >= '{JOURNAL}' AND kind < '{JOURNAL}\U0010ffff' ORDER BY sequence"
)
_CHILD = (
    "SELECT 1 FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ? AND parent_checkpoint_id = ? LIMIT 1"
)

Moved = Callable[[Slot], Slot]
"""What makes a slot of one thread a slot of another."""


def copy_thread(reading: Reading, source: str, target: str) -> bool:
    """Give the target thread all checkpoints and writes of the source, and its journal: no call
    of any of its batches shall run again. What waits in the source's queues stays there.

    Gives whether the target was there before: what was replaced may have left rows behind.
    """
    if source == target:
        return False
    cursor = reading.cursor
    was_there = cursor.execute(_ANY, (target,)).fetchone() is not None
    moved = _shared(cursor, of_thread(reading, source), target)
    cursor.execute(_CHECKPOINTS, (target, source))
    cursor.execute(_WRITES, (target, source))
    cursor.execute(_JOURNAL, (target, source))
    for namespace, row in reading.ours(source):
        new = {channel: moved(slot) for channel, slot in reading.body(row).slots.items()}
        body = replaced(cursor, reading.shapes, row.body, new)
        cursor.execute(_BODY, (body, target, namespace, row.id))
    for namespace, id, task, packed in packed_writes(cursor, source):
        value = dump([[channel, moved(slot)] for channel, slot in parse(packed)])
        cursor.execute(_PACKED, (value, target, namespace, id, task))
    return was_there


def fork_thread(
    reading: Reading, place: Place, row: Stored, target: str, changes: Mapping[str, Slot]
) -> None:
    """Begin the target thread with one checkpoint of ours, under its own id, with these changes.

    What its tasks have written comes along if nothing followed it: they have not ended then, and
    keep their ids. The run that stored it is not named, because deleting that run spares the fork.
    """
    slots = reading.body(row).slots
    kept = {channel: slot for channel, slot in slots.items() if channel not in changes}
    moved = _shared(reading.cursor, references(kept.values()), target)
    new = {channel: moved(slot) for channel, slot in kept.items()}
    new |= {channel: slot for channel, slot in changes.items() if channel in slots}
    body = replaced(reading.cursor, reading.shapes, row.body, new)
    told = {**json.loads(row.metadata or b"{}"), "source": "fork"}
    told.pop("run_id", None)
    metadata = json.dumps(told, ensure_ascii=False).encode("utf-8", "ignore")
    key = (target, place.namespace, row.id)
    reading.cursor.execute(_CHECKPOINT, (*key, row.kind, body, metadata))
    if not has_child(reading, place, row.id):
        one = f"{_WRITES} AND checkpoint_ns = ? AND checkpoint_id = ? AND idx != {PACKED}"
        reading.cursor.execute(one, (target, *place, row.id))


def has_child(reading: Reading, place: Place, id: str) -> bool:
    """Whether another checkpoint followed this one."""
    return reading.cursor.execute(_CHILD, (*place, id)).fetchone() is not None


def _shared(cursor: sqlite3.Cursor, used: References, target: str) -> Moved:
    """How slots that refer to these rows and values become slots of the target thread."""
    forks = {branch: _forked(cursor, Ref(branch, end), target) for branch, end in used.ends.items()}
    values = {value: _copied(cursor, value, target) for value in used.values}

    def moved(slot: Slot) -> Slot:
        if isinstance(slot, list) and not isinstance(slot[0], str):
            return [forks[slot[0]], *slot[1:]]
        return values[slot] if isinstance(slot, int) else slot

    return moved


def _forked(cursor: sqlite3.Cursor, rows: Ref, target: str) -> int:
    namespace, channel = cursor.execute(_BRANCH, (rows.branch,)).fetchone()
    return branches.fork(cursor, Place(target, namespace), channel, rows)


def _copied(cursor: sqlite3.Cursor, value: int, target: str) -> int:
    cursor.execute(_COPY_VALUE, (target, value))
    (number,) = cursor.execute(_COPIED_VALUE, (target, value)).fetchone()
    return int(number)
