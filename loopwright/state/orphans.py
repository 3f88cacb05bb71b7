"""What is in the tables and belongs to nothing: no checkpoint that is there needs it.

Looked for and deleted here; when that is right is decided by `doctor`.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from loopwright.state.reading import Reading
from loopwright.state.references import References, of_thread

LAYOUT = ("loopwright_branches", "loopwright_rows", "loopwright_values")

_THREADS = "SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM writes"
_BRANCHES = "SELECT branch, parent, fork, thread FROM loopwright_branches ORDER BY branch DESC"
_ROWS = "SELECT branch, max(position) + 1, count(*) FROM loopwright_rows GROUP BY branch"
_LATER = "SELECT count(*) FROM loopwright_rows WHERE branch = ? AND position >= ?"
_VALUES = "SELECT id, thread FROM loopwright_values"
_STRAY = """
NOT EXISTS (
    SELECT 1 FROM checkpoints WHERE checkpoints.thread_id = writes.thread_id
    AND checkpoints.checkpoint_ns = writes.checkpoint_ns
    AND checkpoints.checkpoint_id = writes.checkpoint_id
) AND (
    EXISTS (
        SELECT 1 FROM checkpoints WHERE checkpoints.thread_id = writes.thread_id
        AND checkpoints.checkpoint_ns = writes.checkpoint_ns
        AND checkpoints.checkpoint_id > writes.checkpoint_id
    ) OR NOT EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.thread_id = writes.thread_id)
)
"""
"""Writes whose checkpoint is not there, and will not come: LangGraph may store it behind them."""
_WRITES = f"SELECT thread_id, count(*) FROM writes WHERE {_STRAY} GROUP BY thread_id"
_CUT = "DELETE FROM loopwright_rows WHERE branch = ? AND position >= ?"
_NO_BRANCH = "DELETE FROM loopwright_branches WHERE branch = ?"
_NO_VALUE = "DELETE FROM loopwright_values WHERE id = ?"
_NO_WRITES = f"DELETE FROM writes WHERE thread_id = ? AND {_STRAY}"
_REMOVED = "UPDATE loopwright_removals SET number = number + 1"


@dataclass
class Orphans:
    """What belongs to nothing, and in the last field what is missing instead."""

    cuts: list[tuple[int, int]] = field(default_factory=list)
    """Branches, and the position from which on nothing needs their rows."""
    rows: int = 0
    """How many rows that are."""
    branches: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    writes: dict[str, int] = field(default_factory=dict)
    """For each thread how many writes stand at a checkpoint that is not there."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """For each thread what its checkpoints need and is not there."""

    def counts(self) -> dict[str, int]:
        """The tables that have rows to delete, and how many."""
        counts = {
            "loopwright_rows": self.rows,
            "loopwright_branches": len(self.branches),
            "loopwright_values": len(self.values),
            "writes": sum(self.writes.values()),
        }
        return {table: count for table, count in counts.items() if count}


def orphans(reading: Reading, *, linear: bool, spared: Iterable[str] = ()) -> Orphans:
    """What belongs to nothing. Nothing of the `spared` threads is told.

    `linear` False for a file that has only LangGraph's own tables. Raises what reading a damaged
    checkpoint raises: what that one needs cannot be known.
    """
    found, spare = Orphans(), set(spared)
    if linear:
        threads = [thread for (thread,) in reading.cursor.execute(_THREADS).fetchall()]
        used = {thread: of_thread(reading, thread) for thread in threads}
        _lists(reading.cursor, used, found, spare)
        _values(reading.cursor, used, found, spare)
    for thread, count in reading.cursor.execute(_WRITES):
        if thread not in spare:
            found.writes[thread] = count
    return found


def _lists(
    cursor: sqlite3.Cursor, used: dict[str, References], found: Orphans, spare: set[str]
) -> None:
    needed = _needed(used)
    kept, forks = dict(needed), dict[int, int]()
    # The newest first: a branch says what it needs of its parent before that one's turn.
    for branch, parent, fork, thread in cursor.execute(_BRANCHES).fetchall():
        forks[branch] = fork
        if parent is not None and branch in kept:
            needed[parent] = max(needed.get(parent, 0), min(fork, needed[branch]))
            kept[parent] = max(kept.get(parent, 0), fork)  # a sweep keeps so much of it
        if thread not in spare:
            _cut(cursor, branch, kept.get(branch, 0), found)
            found.branches += [] if branch in kept else [branch]
    stored = {branch: (end, count) for branch, end, count in cursor.execute(_ROWS)}
    for branch in stored.keys() - forks.keys():
        _cut(cursor, branch, 0, found)
    torn = {branch for branch in needed if not _is_whole(branch, needed, forks, stored)}
    for thread, references in used.items():
        for branch in torn & references.ends.keys():
            found.missing.setdefault(thread, []).append(f"rows of list {branch}")


def _needed(used: dict[str, References]) -> dict[int, int]:
    """The length up to which some thread refers to each branch."""
    needed: dict[int, int] = {}
    for references in used.values():
        for branch, end in references.ends.items():
            needed[branch] = max(needed.get(branch, 0), end)
    return needed


def _cut(cursor: sqlite3.Cursor, branch: int, end: int, found: Orphans) -> None:
    (count,) = cursor.execute(_LATER, (branch, end)).fetchone()
    if count:
        found.cuts.append((branch, end))
        found.rows += count


def _is_whole(
    branch: int, needed: dict[int, int], forks: dict[int, int], stored: dict[int, tuple[int, int]]
) -> bool:
    """Whether all rows of a branch that are needed are there, those below its fork aside."""
    if branch not in forks:
        return False
    own = max(0, needed[branch] - forks[branch])
    end, count = stored.get(branch, (forks[branch], 0))
    return count >= own and end - count == forks[branch]


def _values(
    cursor: sqlite3.Cursor, used: dict[str, References], found: Orphans, spare: set[str]
) -> None:
    needed = {id for references in used.values() for id in references.values}
    stored = dict(cursor.execute(_VALUES).fetchall())
    found.values += [
        id for id, thread in stored.items() if id not in needed and thread not in spare
    ]
    for thread, references in used.items():
        for id in references.values - stored.keys():
            found.missing.setdefault(thread, []).append(f"value {id}")


def delete(cursor: sqlite3.Cursor, found: Orphans, *, linear: bool) -> None:
    """Delete what was found, in the caller's transaction."""
    cursor.executemany(_CUT, found.cuts)
    cursor.executemany(_NO_BRANCH, [(branch,) for branch in found.branches])
    cursor.executemany(_NO_VALUE, [(id,) for id in found.values])
    cursor.executemany(_NO_WRITES, [(thread,) for thread in found.writes])
    if linear:
        cursor.execute(_REMOVED)  # what processes remember is void
