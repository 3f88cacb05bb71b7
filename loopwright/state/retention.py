"""What is taken away, and copies: threads, runs, old checkpoints, and the rows nobody refers to.

Everything works in the caller's transaction. How things are stored is said in the other modules.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from loopwright.state.bodies import TYPE, Body, decode, dump, parse, replaced
from loopwright.state.branches import Place
from loopwright.state.pending import PACKED
from loopwright.state.reading import Reading
from loopwright.state.slots import Slot

_TABLES_OF_A_THREAD = (
    "DELETE FROM loopwright_rows WHERE branch IN"
    " (SELECT branch FROM loopwright_branches WHERE thread = ?)",
    "DELETE FROM loopwright_branches WHERE thread = ?",
    "DELETE FROM loopwright_values WHERE thread = ?",
    "DELETE FROM writes WHERE thread_id = ?",
    "DELETE FROM checkpoints WHERE thread_id = ?",
)
_REMOVED = "UPDATE loopwright_removals SET number = number + 1"
_NEWEST = "SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints WHERE thread_id = ? GROUP BY 1"
_OF_A_PLACE = (
    "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ?"
)
_OF_RUNS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
    " WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') IN"
    " (SELECT value FROM json_each(?))"
)
_KEY = " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_OURS = (
    "SELECT checkpoint_ns, checkpoint_id, checkpoint FROM checkpoints"
    " WHERE thread_id = ? AND type = 'loopwright'"
)
_PACKED = (
    "SELECT checkpoint_ns, checkpoint_id, task_id, value FROM writes"
    f" WHERE thread_id = ? AND idx = {PACKED}"
)
_BRANCHES = (
    "SELECT branch, parent, fork, namespace, channel FROM loopwright_branches WHERE thread = ?"
    " ORDER BY branch"
)


class Retention:
    """Deletes and copies in one transaction."""

    def __init__(self, reading: Reading) -> None:
        self._cursor, self._shapes, self._serde = reading.cursor, reading.shapes, reading.serde

    def delete(self, thread: str) -> None:
        """Delete all of a thread but its log."""
        for statement in _TABLES_OF_A_THREAD:
            self._cursor.execute(statement, (thread,))
        self._cursor.execute(_REMOVED)

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what DeltaChannels of it need."""
        for namespace, newest in self._cursor.execute(_NEWEST, (thread,)).fetchall():
            place = Place(thread, namespace)
            stored = self._of(place)
            self._drop(place, set(stored) - {newest}, stored)
        self._sweep(thread)

    def delete_runs(self, runs: Sequence[str]) -> set[str]:
        """Delete the checkpoints of these runs; returns the threads that had some."""
        doomed: dict[Place, set[str]] = {}
        for thread, namespace, id in self._cursor.execute(_OF_RUNS, (json.dumps(list(runs)),)):
            doomed.setdefault(Place(thread, namespace), set()).add(id)
        for place, ids in doomed.items():
            self._drop(place, ids, self._of(place))
        threads = {place.thread for place in doomed}
        for thread in threads:
            self._sweep(thread)
        return threads

    def copy(self, source: str, target: str) -> None:
        """Give the target thread all checkpoints and writes of the source, in rows of its own."""
        if source == target:
            return
        branches = _copied_branches(self._cursor, source, target)
        values = _copied_values(self._cursor, source, target)

        def moved(slot: Slot) -> Slot:
            if isinstance(slot, list) and not isinstance(slot[0], str):
                return [branches[slot[0]], *slot[1:]]
            return values[slot] if isinstance(slot, int) else slot

        _copied_stock(self._cursor, source, target)
        for namespace, id, body in self._cursor.execute(_OURS, (source,)).fetchall():
            slots = self._body(id, TYPE, body).slots
            new = {channel: moved(slot) for channel, slot in slots.items()}
            body = replaced(self._cursor, self._shapes, body, new)
            self._cursor.execute(
                f"UPDATE checkpoints SET checkpoint = ?{_KEY}", (body, target, namespace, id)
            )
        for namespace, id, task, packed in self._cursor.execute(_PACKED, (source,)).fetchall():
            value = dump([[channel, moved(slot)] for channel, slot in parse(packed)])
            self._cursor.execute(
                f"UPDATE writes SET value = ?{_KEY} AND task_id = ? AND idx = ?",
                (value, target, namespace, id, task, PACKED),
            )

    def _drop(self, place: Place, ids: set[str], stored: dict[str, Any]) -> None:
        """Delete checkpoints with their writes, but none that another one needs."""
        ids = ids - self._needed(set(stored) - ids, stored)
        for table in ("checkpoints", "writes"):
            self._cursor.executemany(f"DELETE FROM {table}{_KEY}", [(*place, id) for id in ids])

    def _of(self, place: Place) -> dict[str, Any]:
        rows = self._cursor.execute(_OF_A_PLACE, place).fetchall()
        return {id: (parent, kind, body, metadata) for id, parent, kind, body, metadata in rows}

    def _needed(self, kept: Iterable[str], stored: dict[str, Any]) -> set[str]:
        """The ancestors from whose writes the DeltaChannels of the kept checkpoints are rebuilt.

        Which channels those are, LangGraph says in the metadata: it counts their updates since the
        last snapshot. The walk ends where all of them have a stored value.
        """
        needed: set[str] = set()
        for id in kept:
            parent, kind, body, metadata = stored[id]
            counted = json.loads(metadata or b"{}").get("counters_since_delta_snapshot")
            if not counted:
                continue
            own = self._body(id, kind, body)
            missing = {channel for channel in counted if channel in own.versions} - own.valued
            walked = {id}
            while missing and parent in stored and parent not in walked:
                walked.add(parent)
                needed.add(parent)
                parent, kind, body, _ = stored[parent]
                missing -= self._body(id, kind, body).valued
        return needed

    def _body(self, id: str, kind: str, body: bytes) -> Body:
        return decode(self._cursor, self._shapes, self._serde, id, kind, body)

    def _sweep(self, thread: str) -> None:
        """Delete the rows and values of a thread that nothing refers to any more."""
        ends, values = self._referred(thread)
        for branch, parent, fork, *_ in reversed(
            self._cursor.execute(_BRANCHES, (thread,)).fetchall()
        ):
            end = ends.get(branch, 0)
            if parent is not None and end:
                ends[parent] = max(ends.get(parent, 0), min(fork, end))
            self._cursor.execute(
                "DELETE FROM loopwright_rows WHERE branch = ? AND position >= ?", (branch, end)
            )
            if not end:
                self._cursor.execute("DELETE FROM loopwright_branches WHERE branch = ?", (branch,))
        found = self._cursor.execute("SELECT id FROM loopwright_values WHERE thread = ?", (thread,))
        unused = [(id,) for (id,) in found.fetchall() if id not in values]
        self._cursor.executemany("DELETE FROM loopwright_values WHERE id = ?", unused)
        self._cursor.execute(_REMOVED)

    def _referred(self, thread: str) -> tuple[dict[int, int], set[int]]:
        """How much of each branch is referred to, and which values."""
        slots: list[Slot] = []
        for _, id, body in self._cursor.execute(_OURS, (thread,)).fetchall():
            slots += self._body(id, TYPE, body).slots.values()
        for *_, packed in self._cursor.execute(_PACKED, (thread,)).fetchall():
            slots += [slot for _, slot in parse(packed)]
        ends: dict[int, int] = {}
        for slot in slots:
            if isinstance(slot, list) and not isinstance(slot[0], str):
                ends[slot[0]] = max(ends.get(slot[0], 0), slot[2])
        return ends, {slot for slot in slots if isinstance(slot, int)}


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
