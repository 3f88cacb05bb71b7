"""Copies of threads, in rows of their own: neither thread's deletion touches the other.

What the rows mean is said in `branches`, `slots` and `pending`.
"""

import sqlite3

from loopwright.state.bodies import dump, parse, replaced
from loopwright.state.pending import PACKED, packed_writes
from loopwright.state.reading import Reading
from loopwright.state.slots import Slot

_BRANCHES = (
    "SELECT branch, parent, fork, namespace, channel FROM loopwright_branches WHERE thread = ?"
    " ORDER BY branch"
)
_KEY = " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_BODY = f"UPDATE checkpoints SET checkpoint = ?{_KEY}"
_WRITES = f"UPDATE writes SET value = ?{_KEY} AND task_id = ? AND idx = {PACKED}"


def copy_thread(reading: Reading, source: str, target: str) -> None:
    """Give the target thread all checkpoints and writes of the source."""
    if source == target:
        return
    cursor = reading.cursor
    branches = _copied_branches(cursor, source, target)
    values = _copied_values(cursor, source, target)

    def moved(slot: Slot) -> Slot:
        if isinstance(slot, list) and not isinstance(slot[0], str):
            return [branches[slot[0]], *slot[1:]]
        return values[slot] if isinstance(slot, int) else slot

    _copied_stock(cursor, source, target)
    for namespace, row in reading.ours(source):
        new = {channel: moved(slot) for channel, slot in reading.body(row).slots.items()}
        body = replaced(cursor, reading.shapes, row.body, new)
        cursor.execute(_BODY, (body, target, namespace, row.id))
    for namespace, id, task, packed in packed_writes(cursor, source):
        value = dump([[channel, moved(slot)] for channel, slot in parse(packed)])
        cursor.execute(_WRITES, (value, target, namespace, id, task))


def _copied_branches(cursor: sqlite3.Cursor, source: str, target: str) -> dict[int, int]:
    copies: dict[int, int] = {}
    for branch, parent, fork, namespace, channel in cursor.execute(_BRANCHES, (source,)).fetchall():
        cursor.execute(
            "INSERT INTO loopwright_branches (thread, namespace, channel, parent, fork)"
            " VALUES (?, ?, ?, ?, ?)",
            (target, namespace, channel, copies.get(parent), fork),
        )
        assert cursor.lastrowid is not None
        copies[branch] = cursor.lastrowid
        cursor.execute(
            "INSERT INTO loopwright_rows (branch, position, type, body)"
            " SELECT ?, position, type, body FROM loopwright_rows WHERE branch = ?",
            (copies[branch], branch),
        )
    return copies


def _copied_values(cursor: sqlite3.Cursor, source: str, target: str) -> dict[int, int]:
    cursor.execute(
        "INSERT OR IGNORE INTO loopwright_values (thread, hash, type, body)"
        " SELECT ?, hash, type, body FROM loopwright_values WHERE thread = ? ORDER BY id",
        (target, source),
    )
    pairs = cursor.execute(
        "SELECT mine.id, copy.id FROM loopwright_values AS mine JOIN loopwright_values AS copy"
        " ON copy.thread = ? AND copy.hash = mine.hash WHERE mine.thread = ?",
        (target, source),
    )
    return dict(pairs.fetchall())


def _copied_stock(cursor: sqlite3.Cursor, source: str, target: str) -> None:
    """Copy LangGraph's tables; what refers to rows of ours still refers to the source's."""
    cursor.execute(
        "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
        " parent_checkpoint_id, type, checkpoint, metadata) SELECT ?, checkpoint_ns,"
        " checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
        " WHERE thread_id = ?",
        (target, source),
    )
    cursor.execute(
        "INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id,"
        " task_path, idx, channel, type, value) SELECT ?, checkpoint_ns, checkpoint_id, task_id,"
        " task_path, idx, channel, type, value FROM writes WHERE thread_id = ?",
        (target, source),
    )
