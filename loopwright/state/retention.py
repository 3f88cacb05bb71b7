"""What is taken away: threads, runs, old checkpoints, and the rows nobody refers to any more.

Everything works in the caller's transaction. What a deleted checkpoint leaves for DeltaChannels is
said in `remains`.
"""

import json
from collections.abc import Mapping, Sequence, Set

from loopwright.state.branches import Place
from loopwright.state.reading import VISIBLE, Reading, Stored
from loopwright.state.references import of_thread
from loopwright.state.remains import Needs, chain, link, needed, reduce

_TABLES_OF_A_THREAD = (
    "DELETE FROM loopwright_values WHERE thread = ?",
    "DELETE FROM writes WHERE thread_id = ?",
    "DELETE FROM checkpoints WHERE thread_id = ?",
)
_LOG = "DELETE FROM loopwright_log WHERE thread = ?"
_REMOVED = "UPDATE loopwright_removals SET number = number + 1"
_NEWEST = (
    "SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints"
    f" WHERE thread_id = ? AND {VISIBLE} GROUP BY checkpoint_ns"
)
_TOO_MANY = (
    "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
    f" AND {VISIBLE} LIMIT 1 OFFSET ?"
)
_IDS = (
    "SELECT checkpoint_ns, checkpoint_id FROM checkpoints"
    f" WHERE thread_id = ? AND {VISIBLE} ORDER BY checkpoint_ns, checkpoint_id DESC"
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
_FORKS = (
    "SELECT parent, max(fork) FROM loopwright_branches WHERE thread != ?1 AND parent IN"
    " (SELECT branch FROM loopwright_branches WHERE thread = ?1) GROUP BY parent"
)
_INHERITED = (
    "UPDATE loopwright_branches SET thread = (SELECT thread FROM loopwright_branches AS child"
    " WHERE child.parent = loopwright_branches.branch LIMIT 1) WHERE branch = ?"
)
_OWNER = "SELECT thread FROM loopwright_branches WHERE branch = ?"
_CUT = "DELETE FROM loopwright_rows WHERE branch = ? AND position >= ?"
_GONE = "DELETE FROM loopwright_branches WHERE branch = ?"
_VALUES = "SELECT id FROM loopwright_values WHERE thread = ?"


class Retention:
    """Deletes in one transaction; `touched` are the threads of which something was deleted.

    Rows that another thread shares stay until no thread needs them any more.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading, self._cursor = reading, reading.cursor
        self.touched: set[str] = set()

    def delete(self, thread: str) -> None:
        """Delete all of a thread but its log. What forks share of it becomes theirs."""
        for statement in _TABLES_OF_A_THREAD:
            self._cursor.execute(statement, (thread,))
        self.sweep(thread)
        for branch, *_ in self._cursor.execute(_BRANCHES, (thread,)).fetchall():
            self._cursor.execute(_INHERITED, (branch,))

    def delete_whole(self, thread: str) -> None:
        """Delete all of a thread and its log: what waits in its queues, and its journal."""
        self.delete(thread)
        self._cursor.execute(_LOG, (thread,))

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what DeltaChannels of it need."""
        for namespace, newest in self._cursor.execute(_NEWEST, (thread,)).fetchall():
            place = Place(thread, namespace)
            stored = self._reading.stored(place)
            needs = chain(self._reading, place, stored, newest)
            link(self._reading, place, newest, needs)
            self._drop(place, set(stored) - {newest}, stored, needs)
        self.sweep(thread)

    def thin(self, thread: str, keep: int) -> None:
        """Keep the newest checkpoints of each namespace, `keep` at most; cheap if none is over.

        A task's namespace goes with the checkpoint that the task belonged to.
        """
        if self._cursor.execute(_TOO_MANY, (thread, keep)).fetchone() is None:
            return
        kept: dict[str, list[str]] = {}
        for namespace, id in self._cursor.execute(_IDS, (thread,)):
            of_namespace = kept.setdefault(namespace, [])
            if len(of_namespace) < keep:
                of_namespace.append(id)
        oldest = min(kept[""])
        for namespace, ids in kept.items():
            place = Place(thread, namespace)
            left = set() if ":" in namespace and max(ids) < oldest else set(ids)
            stored = self._reading.stored(place)
            self._drop(place, set(stored) - left, stored, needed(self._reading, stored, left))
        self.sweep(thread)

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, but for what DeltaChannels of others need."""
        doomed: dict[Place, set[str]] = {}
        for thread, namespace, id in self._cursor.execute(_OF_RUNS, (json.dumps(list(runs)),)):
            doomed.setdefault(Place(thread, namespace), set()).add(id)
        for place, ids in doomed.items():
            stored = self._reading.stored(place)
            self._drop(place, ids, stored, needed(self._reading, stored, set(stored) - ids))
        for thread in {place.thread for place in doomed}:
            self.sweep(thread)

    def _drop(
        self, place: Place, ids: Set[str], stored: Mapping[str, Stored], needs: Needs
    ) -> None:
        """Delete checkpoints with their writes, but for what is needed of them."""
        for id in ids & set(needs):
            reduce(self._reading, place, stored[id], needs[id])
        gone = [(*place, id) for id in ids - set(needs)]
        for table in ("checkpoints", "writes"):
            self._cursor.executemany(f"DELETE FROM {table}{_KEY}", gone)

    def sweep(self, thread: str) -> None:
        """Delete what nothing refers to any more, of a thread and of those whose rows it shared."""
        waiting = {thread}
        while waiting:
            swept = waiting.pop()
            self.touched.add(swept)
            waiting |= self._swept(swept)
        self._cursor.execute(_REMOVED)

    def _swept(self, thread: str) -> set[str]:
        """Delete unused rows and values of a thread; gives the threads it shares fewer rows of."""
        used = of_thread(self._reading, thread)
        ends = used.ends
        for branch, fork in self._cursor.execute(_FORKS, (thread,)).fetchall():
            ends[branch] = max(ends.get(branch, 0), fork)
        freed: set[str] = set()
        # The newest first: a branch says what it needs of its parent before that one's turn.
        for branch, parent, fork in self._cursor.execute(_BRANCHES, (thread,)).fetchall():
            end = ends.get(branch, 0)
            if parent is not None and end:
                ends[parent] = max(ends.get(parent, 0), min(fork, end))
            self._cursor.execute(_CUT, (branch, end))
            if not end:
                self._cursor.execute(_GONE, (branch,))
                freed.update(owner for (owner,) in self._cursor.execute(_OWNER, (parent,)))
        found = self._cursor.execute(_VALUES, (thread,))
        unused = [(id,) for (id,) in found.fetchall() if id not in used.values]
        self._cursor.executemany("DELETE FROM loopwright_values WHERE id = ?", unused)
        return freed - {thread}
