"""Pending writes: what tasks wrote for the next checkpoint, one by one or a task's in one row.

They are kept after that checkpoint too: DeltaChannels are rebuilt from them, and the history shows
them. A task's writes may wait here for the checkpoint and be committed with it (`Waiting`).
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Overwrite

from loopwright.state.bodies import TYPE, dump, parse
from loopwright.state.branches import Place
from loopwright.state.lease import Lease
from loopwright.state.lists import HeldList
from loopwright.state.slots import OVERWRITE, Slot, inline, load

PACKED = -9
"""The `idx` of a row that has all writes of a task; its `type` is ours and its channel empty."""

_COLUMNS = (
    " INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type,"
    " value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_KEEP, _REPLACE = f"INSERT OR IGNORE{_COLUMNS}", f"INSERT OR REPLACE{_COLUMNS}"
_OF_TASK = (
    "SELECT 1 FROM writes"
    " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND task_id = ? LIMIT 1"
)
_READ = (
    "SELECT task_id, task_path, idx, channel, type, value FROM writes"
    " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
_ALL_PACKED = (
    "SELECT checkpoint_ns, checkpoint_id, task_id, value FROM writes"
    f" WHERE thread_id = ? AND idx = {PACKED}"
)

Writes = Sequence[tuple[str, Any]]


class Entry(NamedTuple):
    """One stored write."""

    task: str
    path: str
    at: int
    channel: str
    slot: Slot


@dataclass(frozen=True)
class Task:
    """What one task of a checkpoint wrote, not committed yet."""

    checkpoint: str
    id: str
    path: str
    writes: tuple[tuple[str, Any], ...]
    lease: Lease | None = None
    """The one under which it wrote: void when that is lost."""


class Waiting:
    """Writes that are committed with the checkpoint they lead to; at most one task per place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[Place, Task] = {}
        self._several: dict[Place, str] = {}

    def take_in(self, place: Place, task: Task) -> bool:
        """Let a task's writes wait. False if they may not: another task of the superstep wrote."""
        with self._lock:
            if self._several.get(place) == task.checkpoint or place in self._tasks:
                self._several[place] = task.checkpoint
                return False
            self._several.pop(place, None)
            self._tasks[place] = task
            return True

    def at(self, place: Place) -> Task | None:
        """The task that waits at a place."""
        with self._lock:
            return self._tasks.get(place)

    def done(self, place: Place, task: Task | None, *, several: bool = False) -> None:
        """A task's writes are committed, or void: they do not wait any more.

        `several` tasks write for its checkpoint: none of them shall wait.
        """
        with self._lock:
            if task is not None and self._tasks.get(place) is task:
                del self._tasks[place]
                if several:
                    self._several[place] = task.checkpoint

    @contextmanager
    def storing(self, place: Place, task: Task | None, serde: SerializerProtocol) -> Iterator[None]:
        """While the checkpoint is stored that a task's writes have waited for.

        When that fails they go on waiting, unless they have no safe form themselves: nobody could
        read the thread then, or close the file.
        """
        try:
            yield
        except TypeError:
            if task is not None and not _is_storable(task, serde):
                self.done(place, task)
            raise
        self.done(place, task)

    def places(self, thread: str | None = None) -> list[Place]:
        """Where tasks wait, in one thread or in all."""
        with self._lock:
            return [place for place in self._tasks if thread in (None, place.thread)]


def store(cursor: sqlite3.Cursor, place: Place, serde: SerializerProtocol, task: Task) -> None:
    """Store a task's writes as LangGraph's savers do: a regular one is never overwritten."""
    special = all(channel in WRITES_IDX_MAP for channel, _ in task.writes)
    cursor.executemany(
        _REPLACE if special else _KEEP,
        [
            (
                *place,
                task.checkpoint,
                task.id,
                task.path,
                WRITES_IDX_MAP.get(channel, index),
                channel,
                *serde.dumps_typed(value),
            )
            for index, (channel, value) in enumerate(task.writes)
        ],
    )


def pack(
    cursor: sqlite3.Cursor,
    place: Place,
    serde: SerializerProtocol,
    task: Task,
    lists: Mapping[str, HeldList],
) -> None:
    """Store a task's writes in one row; elements that its checkpoint's `lists` end with are not
    stored again."""
    if cursor.execute(_OF_TASK, (*place, task.checkpoint, task.id)).fetchone():
        store(cursor, place, serde, task)
        return
    packed = [
        [channel, _shared(value, lists.get(channel)) or inline(serde.dumps_typed(value))]
        for channel, value in task.writes
    ]
    row = (*place, task.checkpoint, task.id, task.path, PACKED, "", TYPE, dump(packed))
    cursor.execute(_KEEP, row)


def _is_storable(task: Task, serde: SerializerProtocol) -> bool:
    """Whether all that a task wrote has a safe form."""
    try:
        for _, value in task.writes:
            serde.dumps_typed(value)
    except TypeError:
        return False
    return True


def _shared(value: Any, held: HeldList | None) -> Slot:
    if isinstance(value, Overwrite):
        rows = _shared(value.value, held)
        return [*rows, OVERWRITE] if isinstance(rows, list) else None
    if type(value) is not list or not value or held is None or len(value) > len(held.elements):
        return None
    end = len(held.elements)
    start = end - len(value)
    same = all(mine is theirs for mine, theirs in zip(held.elements[start:], value, strict=True))
    return [held.branch, start, end] if same else None


def entries(
    cursor: sqlite3.Cursor,
    place: Place,
    checkpoint: str,
    serde: SerializerProtocol,
    waiting: Task | None = None,
) -> list[Entry]:
    """The writes of a checkpoint, stored and waiting, in the order in which they are applied."""
    found: dict[tuple[str, int], Entry] = {}
    rows = cursor.execute(_READ, (*place, checkpoint)).fetchall()
    for task, path, index, channel, kind, value in sorted(rows, key=lambda row: row[2] != PACKED):
        if index == PACKED:
            for at, (name, slot) in enumerate(parse(value)):
                found[task, at] = Entry(task, path, at, name, slot)
        else:
            found.setdefault((task, index), Entry(task, path, index, channel, [kind, value]))
    if waiting is not None and waiting.checkpoint == checkpoint:
        for at, (name, value) in enumerate(waiting.writes):
            slot = inline(serde.dumps_typed(value))
            found.setdefault((waiting.id, at), Entry(waiting.id, waiting.path, at, name, slot))
    return sorted(found.values(), key=lambda e: writes_sort_key(e.path, e.task, e.at))


def packed_writes(cursor: sqlite3.Cursor, thread: str) -> list[tuple[str, str, str, bytes]]:
    """The packed writes of a thread: namespace, checkpoint, task, and their bytes."""
    return cursor.execute(_ALL_PACKED, (thread,)).fetchall()


def loaded(
    cursor: sqlite3.Cursor, serde: SerializerProtocol, found: Iterable[Entry]
) -> list[PendingWrite]:
    """Stored writes as LangGraph takes them."""
    return [(entry.task, entry.channel, load(cursor, serde, entry.slot)) for entry in found]
