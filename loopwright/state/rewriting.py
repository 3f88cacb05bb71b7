"""A stock file rewritten linearly into a new one: resumable, checked, the source only read.

How values are stored is said in `slots`; that they are moved without being revived, in `unread`.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.errors import ConfigurationError, DatabaseError, LoopwrightError
from loopwright.state.bodies import TYPE, Shapes, encode
from loopwright.state.branches import Place, Typed
from loopwright.state.checkpointer import LONG, SqliteCheckpointer
from loopwright.state.connecting import read_only
from loopwright.state.database import Database
from loopwright.state.linear_file import LinearFile
from loopwright.state.pending import entries
from loopwright.state.publishing import publish, require_free, require_sound
from loopwright.state.reading import Reading, Stored
from loopwright.state.slots import Held, Storing, load
from loopwright.state.unread import UnreadSerializer

BATCH = 64
"""Checkpoints per transaction: what is done again at most when the command was killed."""

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_PLACES = "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints ORDER BY 1, 2"
_IDS = "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY 1"
_KEEP = "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)"
_WRITE = "INSERT OR REPLACE INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LOG = "SELECT sequence, thread, kind, body FROM loopwright_log"
_LOGGED = "INSERT OR IGNORE INTO loopwright_log (sequence, thread, kind, body) VALUES (?, ?, ?, ?)"
_LAST = "SELECT seq FROM sqlite_sequence WHERE name = 'loopwright_log'"
_MARK = "CREATE TABLE IF NOT EXISTS loopwright_rewriting (source TEXT NOT NULL UNIQUE)"

Progress = Callable[[str, int, int], None]
"""Told what is being done, for how many checkpoints it is done, and of how many."""


@dataclass(frozen=True)
class Rewritten:
    """What is in the new file. `left_out` are tables of the source that are none of a saver's."""

    threads: int
    checkpoints: int
    writes: int
    bytes_before: int
    bytes_after: int
    left_out: tuple[str, ...]


def linearize(
    source: str | Path,
    target: str | Path,
    *,
    progress: Progress = lambda step, done, total: None,
) -> Rewritten:
    """Write every checkpoint, pending write and log entry of `source` to a new file `target`.

    Each list element is stored once there. Work goes on in `target` + `.rewriting` until all is
    compared; killed at any moment, the same call goes on from there. Needs memory for two of the
    checkpoints, whatever the file's size. Nothing else should write to the source meanwhile.

    Raises ConfigurationError for a target that exists, DatabaseError, also when what was written
    does not read back as the source, or when a checkpoint cannot be read. The source is never
    changed.
    """
    source, target = Path(source).expanduser().absolute(), Path(target).expanduser().absolute()
    with read_only(source) as connection, closing(connection.cursor()) as cursor:
        require_free(source, target)
        cursor.execute("BEGIN")  # all is of this moment
        reading = Reading(cursor, UnreadSerializer(), Shapes())
        tables = {name for (name,) in cursor.execute(_TABLES)}
        if not {"checkpoints", "writes"} <= tables:
            reason = "it has no checkpoints"
            raise DatabaseError(str(source), reason, "name a file of a LangGraph SQLite saver")
        partial = Path(f"{target}.rewriting")
        work = _Rewriting(source, partial, reading, progress)
        try:
            work.copy(log="loopwright_log" in tables)
            work.verify()
            kept, known = work.counts(), work.tables()
        finally:
            work.database.close()
    require_sound(partial)
    before = sum(_size(Path(f"{source}{part}")) for part in ("", "-wal"))
    left_out = tuple(sorted(tables - known))
    return Rewritten(*kept, before, publish(partial, target), left_out)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class _Rewriting:
    """The work on one new file."""

    def __init__(self, source: Path, partial: Path, reading: Reading, progress: Progress) -> None:
        self._source, self._reading, self._progress = source, reading, progress
        self.database = Database(partial)
        SqliteCheckpointer(self.database)  # makes the tables
        self._file = LinearFile(self.database)
        cursor = reading.cursor
        self._places = [Place(*row) for row in cursor.execute(_PLACES).fetchall()]
        (self._total,) = cursor.execute("SELECT count(*) FROM checkpoints").fetchone()
        with self.database.transaction() as cursor:
            cursor.execute(_MARK)
            cursor.execute("INSERT OR IGNORE INTO loopwright_rewriting VALUES (?)", (str(source),))
            (sources,) = cursor.execute("SELECT count(*) FROM loopwright_rewriting").fetchone()
            if sources > 1:
                raise ConfigurationError(
                    f"{str(partial)!r} is half of another file: remove it or name another target",
                    field="target",
                )

    def copy(self, *, log: bool) -> None:
        """Copy what is not in the new file yet."""
        done = 0
        for place, batch in self._batches():
            with self._file.transaction(self._reading.serde) as writing:
                for id in batch:
                    if writing.ancestor(place, id) is None:
                        self._copy_checkpoint(writing, place, id)
            done += len(batch)
            self._progress("copied", done, self._total)
        if log:
            self._copy_log()

    def verify(self) -> None:
        """Compare every checkpoint. Raises DatabaseError."""
        done = 0
        for place, batch in self._batches():
            with self._file.snapshot(self._reading.serde) as written:
                for id in batch:
                    self._compare(written, place, id)
            done += len(batch)
            self._progress("compared", done, self._total)
        with self.database.transaction() as cursor:
            (copied,) = cursor.execute("SELECT count(*) FROM checkpoints").fetchone()
            if copied != self._total:
                raise self._differs(f"{copied} checkpoints instead of {self._total}")
            cursor.execute("DROP TABLE loopwright_rewriting")

    def counts(self) -> tuple[int, int, int]:
        """How many threads, checkpoints and pending writes the new file has."""
        with self.database.transaction() as cursor:
            query = "SELECT count(DISTINCT thread_id), count(*) FROM checkpoints"
            threads, checkpoints = cursor.execute(query).fetchone()
            (writes,) = cursor.execute("SELECT count(*) FROM writes").fetchone()
        return threads, checkpoints, writes

    def tables(self) -> set[str]:
        """The tables of the new file."""
        with self.database.transaction() as cursor:
            return {name for (name,) in cursor.execute(_TABLES)}

    def _batches(self) -> Iterator[tuple[Place, list[str]]]:
        for place in self._places:
            ids = [id for (id,) in self._reading.cursor.execute(_IDS, place).fetchall()]
            for at in range(0, len(ids), BATCH):
                yield place, ids[at : at + BATCH]

    def _copy_checkpoint(self, writing: Reading, place: Place, id: str) -> None:
        stored, checkpoint, values = self._read(self._reading, place, id)
        slots = _slots(writing, place, stored.parent, checkpoint, values)
        body = encode(writing.cursor, writing.shapes, writing.serde, checkpoint, slots)
        row = (*place, id, stored.parent, TYPE, body, stored.metadata)
        writing.cursor.execute(_KEEP, row)
        writes = _writes(self._reading, place, id)
        writing.cursor.executemany(_WRITE, [(*place, id, *write) for write in writes])

    def _copy_log(self) -> None:
        cursor = self._reading.cursor
        with self.database.transaction() as written:
            written.executemany(_LOGGED, cursor.execute(_LOG))
            # Numbers of deleted entries are not used again: cursors in checkpoints point behind.
            last = cursor.execute(_LAST).fetchone()
            written.execute("DELETE FROM sqlite_sequence WHERE name = 'loopwright_log'")
            if last is not None:
                written.execute("INSERT INTO sqlite_sequence VALUES ('loopwright_log', ?)", last)

    def _compare(self, written: Reading, place: Place, id: str) -> None:
        if _told(*self._read(self._reading, place, id)) != _told(*self._read(written, place, id)):
            raise self._differs(f"checkpoint {id} of thread {place.thread!r}")
        if _writes(self._reading, place, id) != _writes(written, place, id):
            raise self._differs(f"the writes of checkpoint {id} of thread {place.thread!r}")

    def _read(self, reading: Reading, place: Place, id: str) -> tuple[Stored, Any, dict[str, Any]]:
        """A checkpoint, and its channel values, unread. Raises DatabaseError."""
        try:
            stored = reading.ancestor(place, id)
            if stored is None:
                raise self._differs(f"checkpoint {id} of thread {place.thread!r} is missing")
            body = reading.body(stored)
            slots = body.slots.items()
            values = {name: load(reading.cursor, reading.serde, slot) for name, slot in slots}
            return stored, body.checkpoint, {**body.values, **values}
        except (LookupError, NotImplementedError, TypeError, ValueError, LoopwrightError) as error:
            if isinstance(error, DatabaseError):
                raise
            reason = f"checkpoint {id} of thread {place.thread!r} cannot be read: {error}"
            raise DatabaseError(
                str(self._source), reason, "delete it or restore a backup"
            ) from error

    def _differs(self, what: str) -> DatabaseError:
        remedy = "stop what writes to the source, remove the new file and begin again"
        return DatabaseError(self.database.path, f"it differs from the source: {what}", remedy)


def _slots(
    writing: Reading, place: Place, parent: str | None, checkpoint: Any, values: dict[str, Any]
) -> dict[str, Any]:
    """The values of a checkpoint, stored as continuations of its parent's."""
    before = writing.held(place, parent)
    storing = Storing(writing.cursor, writing.serde, place, before, (), None)
    versions = checkpoint["channel_versions"]
    newest = max((v for v in versions.values() if isinstance(v, int)), default=0)
    for channel, value in values.items():
        version = versions.get(channel)
        changed = version != before.versions.get(channel) or _changed(
            writing, before, channel, value
        )
        old = isinstance(version, int) and newest - version > LONG
        storing.add(channel, value, changed=changed, old=old)
    return storing.slots


def _changed(writing: Reading, before: Held, channel: str, value: Any) -> bool:
    """Whether a value differs from the parent's, whatever its version says."""
    if channel not in before.slots:
        return True
    known = load(writing.cursor, writing.serde, before.slots[channel])
    return writing.serde.dumps_typed(known) != writing.serde.dumps_typed(value)


def _writes(reading: Reading, place: Place, id: str) -> list[tuple[Any, ...]]:
    """The pending writes of a checkpoint, one row each, in the order of the columns."""
    return [
        (entry.task, entry.path, entry.at, entry.channel, *_typed(reading, entry.slot))
        for entry in entries(reading.cursor, place, id, reading.serde)
    ]


def _typed(reading: Reading, slot: Any) -> Typed:
    if isinstance(slot, list) and isinstance(slot[0], str):
        return slot[0], slot[1]
    return reading.serde.dumps_typed(load(reading.cursor, reading.serde, slot))


def _told(stored: Stored, checkpoint: Any, values: dict[str, Any]) -> Any:
    """All that a checkpoint says, in a form that differs when its bytes would."""
    serde = UnreadSerializer()
    parts = (
        {name: serde.dumps_typed(part) for name, part in d.items()} for d in (checkpoint, values)
    )
    return stored.parent, stored.metadata, *parts
