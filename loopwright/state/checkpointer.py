"""The checkpointer: LangGraph's SQLite saver with a layout that grows with what is new only.

How lists, other values, pending writes and bodies are stored is said in `branches`, `slots`,
`pending` and `bodies`; the connection and its errors live in `database`.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite.utils import search_where

from loopwright.failpoints import reach
from loopwright.state import pending
from loopwright.state.bodies import TYPE, encode
from loopwright.state.branches import Place
from loopwright.state.connecting import translated
from loopwright.state.database import Database
from loopwright.state.keeping import KeepingSaver
from loopwright.state.lease_table import LeaseTable, holds
from loopwright.state.linear_file import LinearFile, Passing
from loopwright.state.migrations import migrate
from loopwright.state.pending import Task
from loopwright.state.reading import VISIBLE, Reading, config_of, place_of
from loopwright.state.slots import Held, Storing

COMPARED = 2
"""How many of a list's last elements are compared by content, unless it is said otherwise."""

LONG = 16
"""After how many supersteps a value that did not change moves out of the bodies."""

_BRANCH = "branch:to:"
"""How the channels begin that start a node."""

_INPUT_TASK = "00000000-0000-0000-0000-000000000000"
_PAGE = 20

_PUT = (
    "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
    " parent_checkpoint_id, type, checkpoint, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_KEYS = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"


class SqliteCheckpointer(KeepingSaver):
    """A saver for any LangGraph graph, sync and async, bound to no event loop; see OpenedSaver.

    Each element of a list is stored once, any other value when its version changed; a stock file is
    opened in place. An element that is changed in place is noticed when it is one of the last
    `compared` ones; None compares all, at the price of reading the list for every checkpoint.

    `fold_writes` commits a task's writes with the checkpoint that they lead to: for graphs of which
    every superstep is one task. Interrupts and errors are committed at once all the same.
    `passing` names channels that only say where such a graph is: a checkpoint that changes nothing
    else while the graph goes on is committed with the next one, or before anything else is read. A
    kill in between leads back to the checkpoint before, and its step is run again.

    Async calls make one hop to the database's thread and are not cut short by a cancellation.
    Nothing stored is ever unpickled. Raises DatabaseError, also for a file of a newer schema.
    """

    def __init__(
        self,
        database: Database | str | Path | None = None,
        *,
        fold_writes: bool = False,
        passing: Collection[str] = (),
        compared: int | None = COMPARED,
    ) -> None:
        super().__init__(database)
        self._fold_writes, self._compared = fold_writes, compared
        self._passing = frozenset(passing)
        with self.cursor():  # makes LangGraph's own tables
            pass
        migrate(self.database)
        self._file = LinearFile(self.database)
        self.leases = LeaseTable(self.database, self.flush)
        self.database.before_close.append(self.flush)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor under the database's lock; commits unless something raised."""
        with self.database.lock, translated(self.database.path):
            self.conn = self.database.connection
            self.setup()
            cursor = self.conn.cursor()
            try:
                yield cursor
                if transaction:
                    self.conn.commit()
            except BaseException:
                if transaction:
                    self.conn.rollback()
                raise
            finally:
                cursor.close()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        place, id = place_of(config), get_checkpoint_id(config)
        with self._file.snapshot(self.serde) as reading:
            if (row := reading.row(place, id)) is None:
                return None
            found, held = reading.whole(place, row, self._file.waiting, self._compared)
            self._file.memo.read(place, held)
        return found._replace(config=config) if id else found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        for page in self.pages(config, filter, before, limit):
            yield from page

    def pages(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[Sequence[CheckpointTuple]]:
        self.flush()
        where, given = search_where(config, filter, before)
        query = f"{_KEYS} {where or 'WHERE 1'} AND {VISIBLE} ORDER BY checkpoint_id DESC LIMIT ?"
        with self._file.snapshot(self.serde) as reading:
            found = reading.cursor.execute(query, (*given, -1 if limit is None else limit))
            keys = iter(found.fetchall())
        while page := [*islice(keys, _PAGE)]:
            yield self._page(page)

    def _page(self, keys: Sequence[tuple[str, str, str]]) -> Sequence[CheckpointTuple]:
        with self._file.snapshot(self.serde) as reading:
            places = [(Place(thread, namespace), id) for thread, namespace, id in keys]
            rows = [(place, reading.row(place, id)) for place, id in places]
            return [
                reading.whole(place, row, self._file.waiting, 0)[0]
                for place, row in rows
                if row is not None  # deleted since the page before
            ]

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        place, lease = place_of(config), self.leases.lease_of(config)
        waiting = self._file.waiting.at(place)
        with self._file.waiting.storing(place, waiting, self.serde):
            with self._file.transaction(self.serde, lease=lease) as reading:
                self._write(reading, config, checkpoint, metadata, new_versions, waiting)
                reach("put")
        return config_of(place, checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        if not self._passes(checkpoint, new_versions):
            return await super().aput(config, checkpoint, metadata, new_versions)
        place, lease = place_of(config), self.leases.lease_of(config)
        waiting = self._file.waiting.at(place)

        def store(reading: Reading) -> None:
            if holds(reading.cursor, lease):
                self._write(reading, config, checkpoint, metadata, new_versions, waiting)

        self._file.passing.append(Passing(place, store))
        self._file.waiting.done(place, waiting)
        return config_of(place, checkpoint["id"])

    def _passes(self, checkpoint: Checkpoint, new_versions: ChannelVersions) -> bool:
        """Whether a checkpoint only says where the graph is, and another one will follow it."""
        others = new_versions.keys() - self._passing
        on = [name for name in others if name.startswith(_BRANCH)]
        goes_on = any(name in checkpoint["channel_values"] for name in on)
        return bool(self._passing) and len(on) == len(others) and goes_on

    def _write(
        self,
        reading: Reading,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        waiting: Task | None,
    ) -> None:
        """Store a checkpoint, with the writes that led to it if they have waited."""
        place, parent = place_of(config), get_checkpoint_id(config)
        self._file.require_parent(place)
        told = get_checkpoint_metadata(config, metadata)
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        storing = self._stored(reading, place, parent, checkpoint, new_versions)
        body = encode(reading.cursor, self._file.shapes, self.serde, checkpoint, storing.slots)
        if waiting is not None and waiting.checkpoint == parent:
            pending.pack(reading.cursor, place, self.serde, waiting, storing.lists)
        elif waiting is not None and holds(reading.cursor, waiting.lease):
            pending.store(reading.cursor, place, self.serde, waiting)
        row = (*place, checkpoint["id"], parent, TYPE, body, text.encode("utf-8", "ignore"))
        reading.cursor.execute(_PUT, row)
        versions = dict(checkpoint["channel_versions"])
        held = Held(checkpoint["id"], versions, storing.slots, storing.all_lists())
        self._file.memo.wrote(place, held)

    def _stored(
        self,
        reading: Reading,
        place: Place,
        parent: str | None,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
    ) -> Storing:
        """The channel values of a checkpoint, stored."""
        held = self._file.memo.held(place)
        known = next((known for known in held if known.checkpoint == parent), None)
        before = known or reading.held(place, parent)
        how = (self._compared, self._fold_writes)
        storing = Storing(reading.cursor, self.serde, place, before, held, *how)
        versions = checkpoint["channel_versions"]
        newest = max((v for v in versions.values() if isinstance(v, int)), default=0)
        for channel, value in checkpoint["channel_values"].items():
            version = versions.get(channel)
            same = channel in before.slots and version == before.versions.get(channel)
            changed = version is None or channel in new_versions or not same
            old = isinstance(version, int) and newest - version > LONG
            storing.add(channel, value, changed=changed, old=old)
        return storing

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        place, task = self._task_of(config, writes, task_id, task_path)
        if writes and not self._waits(place, task):
            self._file.commit(place, task, self.serde)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        place, task = self._task_of(config, writes, task_id, task_path)
        if writes and not self._waits(place, task):
            await self.database.here(self._file.commit, place, task, self.serde)

    def _task_of(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> tuple[Place, Task]:
        checkpoint = str(config["configurable"]["checkpoint_id"])
        lease = self.leases.lease_of(config)
        return place_of(config), Task(checkpoint, task, path, tuple(writes), lease)

    def _waits(self, place: Place, task: Task) -> bool:
        """Whether a task's writes wait for their checkpoint. LangGraph's own channels never do."""
        if not self._fold_writes or task.id == _INPUT_TASK:
            return False
        own = any(channel.startswith("__") for channel, _ in task.writes)
        return not own and self._file.waiting.take_in(place, task)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        if not channels:
            return {}
        self.flush()
        with self._file.snapshot(self.serde) as reading:
            return reading.delta_history(place_of(config), get_checkpoint_id(config), channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Numbers; a text that a stock saver's checkpoint handed over is counted on as it does."""
        if isinstance(current, str):
            return super().get_next_version(current, channel)
        return (current or 0) + 1
