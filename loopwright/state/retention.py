"""What is taken away: threads, runs, old checkpoints, and the rows nobody refers to any more.

Everything works in the caller's transaction. What a deleted checkpoint leaves for DeltaChannels is
said in `remains`.
"""

import json
from collections.abc import Mapping, Sequence

from loopwright.state.bodies import parse
from loopwright.state.branches import Place
from loopwright.state.pending import packed_writes
from loopwright.state.reading import VISIBLE, Reading, Stored
from loopwright.state.remains import Needs, chain, link, needed, reduce
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
_NEWEST = (
    "SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints"
    f" WHERE thread_id = ? AND {VISIBLE} GROUP BY checkpoint_ns"
)
_OF_RUNS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
    " WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') IN"
    " (SELECT value FROM json_each(?))"
)
_KEY = " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_BRANCHES = (
    "SELECT branch, parent, fork FROM loopwright_branches WHERE thread = ? ORDER BY branch DESC"
)
_CUT = "DELETE FROM loopwright_rows WHERE branch = ? AND position >= ?"
_VALUES = "SELECT id FROM loopwright_values WHERE thread = ?"


class Retention:
    """Deletes and copies in one transaction."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._cursor = reading, reading.cursor

    def delete(self, thread: str) -> None:
        """Delete all of a thread but its log."""
        for statement in _TABLES_OF_A_THREAD:
            self._cursor.execute(statement, (thread,))
        self._cursor.execute(_REMOVED)

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what DeltaChannels of it need."""
        for namespace, newest in self._cursor.execute(_NEWEST, (thread,)).fetchall():
            place = Place(thread, namespace)
            stored = self._reading.stored(place)
            needs = chain(self._reading, place, stored, newest)
            link(self._reading, place, newest, needs)
            self._drop(place, set(stored) - {newest}, stored, needs)
        self._sweep(thread)

    def delete_runs(self, runs: Sequence[str]) -> set[str]:
        """Delete the checkpoints of these runs; returns the threads that had some."""
        doomed: dict[Place, set[str]] = {}
        for thread, namespace, id in self._cursor.execute(_OF_RUNS, (json.dumps(list(runs)),)):
            doomed.setdefault(Place(thread, namespace), set()).add(id)
        for place, ids in doomed.items():
            stored = self._reading.stored(place)
            self._drop(place, ids, stored, needed(self._reading, stored, set(stored) - ids))
        threads = {place.thread for place in doomed}
        for thread in threads:
            self._sweep(thread)
        return threads

    def _drop(
        self, place: Place, ids: set[str], stored: Mapping[str, Stored], needs: Needs
    ) -> None:
        """Delete checkpoints with their writes, but for what is needed of them."""
        for id in ids & set(needs):
            reduce(self._reading, place, stored[id], needs[id])
        gone = [(*place, id) for id in ids - set(needs)]
        for table in ("checkpoints", "writes"):
            self._cursor.executemany(f"DELETE FROM {table}{_KEY}", gone)

    def _sweep(self, thread: str) -> None:
        """Delete the rows and values of a thread that nothing refers to any more."""
        ends, values = self._referred(thread)
        # The newest first: a branch says what it needs of its parent before that one's turn.
        for branch, parent, fork in self._cursor.execute(_BRANCHES, (thread,)).fetchall():
            end = ends.get(branch, 0)
            if parent is not None and end:
                ends[parent] = max(ends.get(parent, 0), min(fork, end))
            self._cursor.execute(_CUT, (branch, end))
            if not end:
                self._cursor.execute("DELETE FROM loopwright_branches WHERE branch = ?", (branch,))
        found = self._cursor.execute(_VALUES, (thread,))
        unused = [(id,) for (id,) in found.fetchall() if id not in values]
        self._cursor.executemany("DELETE FROM loopwright_values WHERE id = ?", unused)
        self._cursor.execute(_REMOVED)

    def _referred(self, thread: str) -> tuple[dict[int, int], set[int]]:
        """How much of each branch is referred to, and which values."""
        slots: list[Slot] = []
        for _, row in self._reading.ours(thread):
            slots += self._reading.body(row).slots.values()
        for *_, packed in packed_writes(self._cursor, thread):
            slots += [slot for _, slot in parse(packed)]
        ends: dict[int, int] = {}
        for slot in slots:
            if isinstance(slot, list) and not isinstance(slot[0], str):
                ends[slot[0]] = max(ends.get(slot[0], 0), slot[2])
        return ends, {slot for slot in slots if isinstance(slot, int)}
