"""What `loopwright doctor --repair` does about what it found, each in a transaction of its own.

Nothing here needs judgement: what is wrong, and whether it can be mended, is said in `doctor`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6

from loopwright.state.branches import Place
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.connecting import translated
from loopwright.state.database import Database
from loopwright.state.doctor import Finding, Report
from loopwright.state.lease_rows import forget, lease_rows
from loopwright.state.orphans import delete, orphans
from loopwright.state.publishing import PARTS
from loopwright.state.repair import repair
from loopwright.state.schema import held_results
from loopwright.state.view import moved


def mend(report: Report) -> list[str]:
    """Mend what can be; gives what was done, in words. Raises DatabaseError.

    A thread that is being run is left alone, and so is what belongs to it.
    """
    with closing(Database(report.path, create=False)) as database:
        saver = SqliteCheckpointer(database)
        ways: dict[str, Callable[[list[Finding]], Iterator[str]]] = {
            "leases": lambda _: _leases(saver),
            "transcript": lambda found: _transcripts(saver, found),
            "orphans": lambda _: _orphans(saver),
            "rights": lambda _: _rights(report.path),
            "log_file": lambda _: _log_file(database),
        }
        done: list[str] = []
        for name, way in ways.items():
            if found := [finding for finding in report.findings if finding.mend == name]:
                done += way(found)
        return done


def _leases(saver: SqliteCheckpointer) -> Iterator[str]:
    with saver.transaction() as reading:
        dead = [lease for lease in lease_rows(reading.cursor) if not lease.is_live]
        for lease in dead:
            forget(reading.cursor, lease)
    for lease in dead:
        yield f"thread {lease.thread}: removed the lease of run {lease.run}"


def _transcripts(saver: SqliteCheckpointer, found: list[Finding]) -> Iterator[str]:
    for place in [finding.place for finding in found if finding.place is not None]:
        with saver.transaction() as reading:  # nobody can take the thread meanwhile
            if place.thread in _live(reading.cursor):
                yield f"thread {place.thread}: is being run now, left alone"
                continue
            counts = _mend_transcript(saver, place)
        done = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        yield f"thread {place.thread}: transcript mended ({done})"


def _live(cursor: Any) -> set[str]:
    return {lease.thread for lease in lease_rows(cursor) if lease.is_live}


def _mend_transcript(saver: SqliteCheckpointer, place: Place) -> dict[str, int]:
    """Store the repaired transcript as a new checkpoint; gives what was mended."""
    thread, namespace = place
    found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": namespace}})
    if found is None:
        return {}
    values = found.checkpoint["channel_values"]
    mended, report = repair(values["messages"], held_results(values.get("held")))
    if report.changed:
        _store(saver, found, mended)
    return {name: count for name, count in report.counts().items() if count}


def _store(saver: SqliteCheckpointer, found: CheckpointTuple, mended: list[Any]) -> None:
    before = found.checkpoint
    changes = {"messages": mended}
    for name in ("view", "compaction"):  # they point into the transcript
        if before["channel_values"].get(name) is not None:
            value = before["channel_values"][name]
            changes[name] = cast(Any, moved(value, before["channel_values"]["messages"], mended))
    version = max(v for v in before["channel_versions"].values() if isinstance(v, int)) + 1
    versions = dict.fromkeys(changes, version)
    checkpoint = {
        **before,
        "id": str(uuid6(clock_seq=-2)),
        "ts": datetime.now(UTC).isoformat(),
        "channel_values": {**before["channel_values"], **changes},
        "channel_versions": {**before["channel_versions"], **versions},
        "updated_channels": sorted(changes),
    }
    step = int(found.metadata.get("step", 0)) + 1
    parents = found.metadata.get("parents", {})
    metadata: Any = {"source": "update", "step": step, "parents": parents}
    saver.put(found.config, cast(Checkpoint, checkpoint), metadata, cast(Any, versions))


def _orphans(saver: SqliteCheckpointer) -> Iterator[str]:
    with saver.transaction() as reading:
        found = orphans(reading, linear=True, spared=_live(reading.cursor))
        delete(reading.cursor, found, linear=True)
    for table, count in found.counts().items():
        yield f"table {table}: deleted {count} rows that belong to no checkpoint"


def _rights(path: str) -> Iterator[str]:
    for part in PARTS:
        if os.path.exists(path + part):
            os.chmod(path + part, 0o600)
    yield "file: only its owner may use it now"


def _log_file(database: Database) -> Iterator[str]:
    with database.lock, translated(database.path):
        busy, *_ = database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if not busy:
        yield "file: emptied its write-ahead log"
    else:
        yield "file: its write-ahead log is in use by another program, left alone"
