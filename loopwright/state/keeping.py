"""What a saver does with whole threads: their past, copies, forks, and what is kept of them.

How a single checkpoint is stored and read is said in `checkpointer`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain, repeat
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from loopwright.errors import DatabaseError
from loopwright.state import branches
from loopwright.state.branches import Place
from loopwright.state.connecting import translated
from loopwright.state.copying import copy_thread, fork_thread
from loopwright.state.hopping import HoppingSaver
from loopwright.state.lease import Lease
from loopwright.state.linear_file import LinearFile
from loopwright.state.moments import CHANNELS, Moment, moment_of
from loopwright.state.reading import VISIBLE, Reading, Stored, place_of
from loopwright.state.retention import Retention
from loopwright.state.slots import inline, load, rows_of

PAGE = 100
"""Moments that are read at a time."""

_KNOWN = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? LIMIT 1"
_THREADS = (
    "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = ''"
    " GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC"
)
_OLDER = (
    "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    f" WHERE thread_id = ? AND checkpoint_ns = '' AND {VISIBLE} AND checkpoint_id < ?"
    " ORDER BY checkpoint_id DESC LIMIT ?"
)
_NEWEST = "\U0010ffff"
"""Sorts behind every id."""


class KeepingSaver(HoppingSaver):
    """A saver over a file of our layout, and its work on whole threads."""

    _file: LinearFile

    def flush(self, thread: str | None = None) -> None:
        """Commit the writes that wait for their checkpoint, of one thread or all."""
        self._file.flush(self.serde, thread)

    def transaction(self) -> AbstractContextManager[Reading]:
        """One commit for all that is done inside by this caller, also on a log in this file."""
        return self._file.transaction(self.serde)

    def thread_ids(self) -> list[str]:
        """The stored threads, the one written last first."""
        with self._file.snapshot(self.serde) as reading:
            return [row[0] for row in reading.cursor.execute(_THREADS)]

    def is_known(self, config: RunnableConfig) -> bool:
        thread, namespace = place_of(config)
        with self._file.snapshot(self.serde) as reading:
            return reading.cursor.execute(_KNOWN, (thread, namespace)).fetchone() is not None

    def moments(self, thread: str) -> Iterator[Moment]:
        """The thread's moments, the newest first. No lock is held between two pages of them, and no
        message is loaded."""
        below = _NEWEST
        for size in chain([1], repeat(PAGE)):  # often only the newest one is asked for
            with self._file.snapshot(self.serde) as reading:
                rows = reading.cursor.execute(_OLDER, (thread, below, size)).fetchall()
                page = [_moment(reading, Stored(*row)) for row in rows]
            if not page:
                return
            yield from page
            below = page[-1].id

    def tail(self, thread: str, id: str, channel: str, count: int) -> list[Any] | None:
        """The last elements of a list of a checkpoint, at most `count`, without reading the others;
        None if the list is not stored as rows."""
        with self._file.snapshot(self.serde) as reading:
            row = reading.row(Place(thread, ""), id)
            ref = None if row is None else rows_of(reading.body(row).slots.get(channel))
            if ref is None:
                return None
            stored = branches.read(reading.cursor, ref, max(0, ref.length - count))
        return [self.serde.loads_typed(typed) for typed in stored]

    def fork(self, source: str, id: str, target: str, values: Mapping[str, Any]) -> bool:
        """Begin a thread with a checkpoint of another, with these values in place of its own.

        It costs what the checkpoint costs, not what its lists do. False if the checkpoint is not
        stored in our form or has none of these values: then it has to be read and put.
        """
        place = Place(source, "")
        with self._file.transaction(self.serde) as reading:
            row = reading.row(place, id)
            if row is None or not values.keys() <= reading.body(row).slots.keys():
                return False
            changes = {name: inline(self.serde.dumps_typed(new)) for name, new in values.items()}
            fork_thread(reading, place, row, target, changes)
        return True

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread, its log too. What forks share of it stays theirs."""
        self._remove([str(thread_id)], Retention.delete_whole)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, but for what DeltaChannels of others need."""
        self.flush()
        with self._file.transaction(self.serde) as reading:
            retention = Retention(reading)
            retention.delete_runs(run_ids)
            self._file.memo.removed(reading.removals(), retention.touched)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Give a thread all checkpoints of another; rows are shared, so it costs the checkpoints
        only."""
        self.flush()
        with self._file.transaction(self.serde) as reading:
            if copy_thread(reading, str(source_thread_id), str(target_thread_id)):
                retention = Retention(reading)
                retention.sweep(str(target_thread_id))
                self._file.memo.removed(reading.removals(), retention.touched)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` keeps the newest checkpoint of each namespace, and out of sight what its
        DeltaChannels are rebuilt from; `delete` keeps nothing but the thread's log."""
        ways = {"keep_latest": Retention.prune, "delete": Retention.delete}
        if strategy not in ways:
            raise ValueError(f"unknown strategy {strategy!r}: use one of {', '.join(ways)}")
        self.flush()
        self._remove([str(thread) for thread in thread_ids], ways[strategy])

    def thin(self, thread: str, keep: int) -> None:
        """Keep the newest `keep` checkpoints of each namespace of a thread that nobody runs."""
        self.flush(thread)  # what waits belongs to a checkpoint that stays
        self._remove([thread], lambda retention, thread: retention.thin(thread, keep))

    def reclaim(self) -> None:
        """Give the space of what was deleted back to the system; rewrites the whole file."""
        self.flush()
        with self.database.lock, translated(self.database.path):
            self.database.connection.execute("VACUUM")
            self.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _remove(self, threads: Sequence[str], way: Callable[[Retention, str], None]) -> None:
        with self._file.transaction(self.serde) as reading:
            retention = Retention(reading)
            for thread in threads:
                way(retention, thread)
            self._file.memo.removed(reading.removals(), retention.touched)
        for thread in threads:
            for place in self._file.waiting.places(thread):
                self._file.waiting.done(place, self._file.waiting.at(place))


async def forget(saver: BaseCheckpointSaver[Any], thread: str) -> None:
    """Delete the checkpoints of a thread that did not begin; what waits in its queues stays."""
    with suppress(NotImplementedError):
        if isinstance(saver, KeepingSaver):
            await saver.aprune([thread], strategy="delete")
        else:
            await saver.adelete_thread(thread)


async def thin(saver: BaseCheckpointSaver[Any] | None, lease: Lease, keep: int | None) -> None:
    """At the end of a run: keep the newest checkpoints of its thread, all of them for None.

    A file that cannot be written does not take the run's result away: the next run tries again.
    """
    if keep is not None and not lease.namespace and isinstance(saver, KeepingSaver):
        with suppress(DatabaseError):
            await saver.database.hop(saver.thin, lease.thread, keep)


def _moment(reading: Reading, row: Stored) -> Moment:
    body = reading.body(row)
    values: dict[str, Any] = {**dict.fromkeys(body.slots), **body.values}
    length = len(values.get("messages") or ())
    for name in body.slots.keys() & CHANNELS:
        rows = rows_of(body.slots[name])
        if rows is not None:
            length = rows.length
        else:
            values[name] = load(reading.cursor, reading.serde, body.slots[name])
            length = len(values[name] or ()) if name == "messages" else length
    metadata = json.loads(row.metadata or b"{}")
    return moment_of(body.checkpoint, metadata, row.parent, length, values)
