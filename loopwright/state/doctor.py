"""What is wrong with a database file, and what to do about it. Nothing is changed here.

What is mended, and how, is said in `mending`; what belongs to nothing, in `orphans`.
"""

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.checkpoint.serde.jsonplus import InvalidModuleError

from loopwright.errors import LoopwrightError
from loopwright.state.bodies import Shapes
from loopwright.state.branches import Place
from loopwright.state.connecting import LOG_LIMIT, read_only
from loopwright.state.lease_rows import LeaseRow, lease_rows
from loopwright.state.migrations import MIGRATIONS, schema
from loopwright.state.opening import strict_serializer
from loopwright.state.orphans import orphans
from loopwright.state.pending import Waiting
from loopwright.state.reading import VISIBLE, Reading
from loopwright.state.transcript import faults

Mend = Literal["orphans", "leases", "transcript", "log_file", "rights"]

OUR_CHANNELS = {"messages", "decision", "run", "view"}
"""The channels that every thread of an agent of ours has; those of other graphs are let be."""

LARGE_LOG = 16 * LOG_LIMIT
"""Bytes of a write-ahead log that tell of a reader that was left open."""

UNREADABLE = (
    LoopwrightError,
    sqlite3.Error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    NotImplementedError,
    InvalidModuleError,
)
"""What reading a damaged checkpoint may raise."""

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_PLACES = f"SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints WHERE {VISIBLE} ORDER BY 1, 2"
_NO_JSON = "SELECT sequence, thread FROM loopwright_log WHERE NOT json_valid(body)"
_STRANGE = (
    "SELECT DISTINCT thread FROM loopwright_log"
    " WHERE thread NOT IN (SELECT thread_id FROM checkpoints)"
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: with which thread or table (`where`), and what to do."""

    where: str
    what: str
    remedy: str
    mend: Mend | None = None
    """What `--repair` does about it; None if that needs somebody's judgement."""
    place: Place | None = None


@dataclass
class Report:
    """What was found. `notes` are worth knowing, and nothing is wrong with them."""

    path: str
    schema: int = 0
    """0 for a file of LangGraph's own saver; `newest` is the last one known."""
    newest: int = len(MIGRATIONS)
    threads: int = 0
    others: int = 0
    """Threads of other graphs than an agent of ours."""
    log_bytes: int = 0
    """Of the write-ahead log."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


def examine(path: str | Path, *, quick: bool = False) -> Report:
    """Look at everything in a file; `quick` leaves out the comparison of indexes with tables.

    Raises DatabaseError for a file that is not there or cannot be opened, or of a newer schema.
    """
    path = Path(path).expanduser().absolute()
    report = Report(str(path), log_bytes=_size(Path(f"{path}-wal")))
    with read_only(path) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN")  # all is of one moment
        report.schema = schema(cursor, str(path))
        report.findings += _file(path, report.log_bytes)
        damage = [*_integrity(cursor, quick)]
        report.findings += damage
        try:
            _contents(cursor, report)
        except sqlite3.DatabaseError as error:
            if not damage:
                raise
            what = f"the rest cannot be read: {error}"
            report.findings.append(Finding("file", what, "restore a backup"))
    return report


def _contents(cursor: sqlite3.Cursor, report: Report) -> None:
    tables = {name for (name,) in cursor.execute(_TABLES)}
    leases = lease_rows(cursor) if "loopwright_leases" in tables else []
    report.findings += map(_dead, (lease for lease in leases if not lease.is_live))
    if {"checkpoints", "writes"} <= tables:
        reading = Reading(cursor, strict_serializer(), Shapes())
        live = {lease.thread for lease in leases if lease.is_live}
        _threads(reading, report, live)
        report.findings += _belonging(reading, "loopwright_rows" in tables, live)
        if "loopwright_log" in tables:
            _log(cursor, report)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _file(path: Path, log_bytes: int) -> Iterator[Finding]:
    rights = stat.S_IMODE(os.stat(path).st_mode)
    if rights & 0o077:
        what = f"others than its owner may use it (rights {rights:03o})"
        yield Finding("file", what, f"chmod 600 {path}", "rights")
    if log_bytes > LARGE_LOG:
        what = f"its write-ahead log has {log_bytes} bytes"
        remedy = "close whatever keeps the file open for reading"
        yield Finding("file", what, remedy, "log_file")


def _integrity(cursor: sqlite3.Cursor, quick: bool) -> Iterator[Finding]:
    check = f"PRAGMA {'quick' if quick else 'integrity'}_check(20)"
    try:
        told = [text for (text,) in cursor.execute(check) if text != "ok"]
    except sqlite3.DatabaseError as error:
        told = [str(error)]
    for text in told:
        yield Finding("file", f"damaged: {text}", "restore a backup")


def _dead(lease: LeaseRow) -> Finding:
    what = f"lease of run {lease.run}, which is dead (process {lease.process} on {lease.host})"
    remedy = "nothing: the next run takes the thread"
    return Finding(f"thread {lease.thread}", what, remedy, "leases")


def _threads(reading: Reading, report: Report, live: set[str]) -> None:
    """Load every thread's newest state, and check the transcripts of ours."""
    ours: set[str] = set()
    threads: set[str] = set()
    for place in [Place(*row) for row in reading.cursor.execute(_PLACES).fetchall()]:
        threads.add(place.thread)
        try:
            values, wrote = _newest(reading, place)
            if values.keys() >= OUR_CHANNELS:
                ours.add(place.thread)
                _transcript(report, place, values, wrote, place.thread in live)
        except UNREADABLE as error:
            what = f"its newest state{_in(place)} cannot be loaded: {error}"
            remedy = "restore a backup, or go back to an earlier moment of the thread"
            report.findings.append(Finding(f"thread {place.thread}", what, remedy, None, place))
    report.threads, report.others = len(threads), len(threads - ours)


def _newest(reading: Reading, place: Place) -> tuple[dict[str, Any], set[str]]:
    """The channel values of a place's newest checkpoint, and the channels of its writes."""
    row = reading.row(place, None)
    assert row is not None
    found, _ = reading.whole(place, row, Waiting(), 0)
    writes = found.pending_writes or []
    return found.checkpoint["channel_values"], {channel for _, channel, _ in writes}


def _transcript(
    report: Report, place: Place, values: dict[str, Any], wrote: set[str], live: bool
) -> None:
    """Tell of a thread of ours; only an idle one has to have a whole transcript."""
    where, messages = f"thread {place.thread}", values["messages"]
    if live:
        report.notes.append((where, "is being run"))
    elif values["run"]["status"] == "running":
        asks = "__interrupt__" in wrote
        what = "waits for an answer" if asks else "its last run did not end: the next one mends it"
        report.notes.append((where, f"{what}{_in(place)}"))
    elif found := _faulty(messages):
        remedy = "the next run mends it, or --repair now"
        report.findings.append(Finding(where, f"{found}{_in(place)}", remedy, "transcript", place))


def _faulty(messages: list[AnyMessage]) -> str:
    """The faults of a transcript in words, empty if there are none."""
    found = faults(messages)
    if not found:
        return ""
    first = found[0]
    what = f"{first.kind.replace('_', ' ')} {first.id} at message {first.at + 1}"
    return what if len(found) == 1 else f"{what}, and {len(found) - 1} more faults"


def _in(place: Place) -> str:
    return f" in namespace {place.namespace}" if place.namespace else ""


def _belonging(reading: Reading, linear: bool, live: set[str]) -> Iterator[Finding]:
    """What belongs to nothing, and what is missing."""
    try:
        found = orphans(reading, linear=linear, spared=live)
    except UNREADABLE as error:
        what = f"what belongs to nothing cannot be told: {error}"
        yield Finding("table checkpoints", what, "see the threads that cannot be loaded")
        return
    for table, count in found.counts().items():
        what = f"{count} rows belong to no checkpoint"
        yield Finding(f"table {table}", what, "they only take space", "orphans")
    for thread, missing in found.missing.items():
        what = f"checkpoints need what is not stored: {', '.join(missing[:5])}"
        yield Finding(f"thread {thread}", what, "restore a backup")


def _log(cursor: sqlite3.Cursor, report: Report) -> None:
    for sequence, thread in cursor.execute(_NO_JSON):
        what = f"entry {sequence} of thread {thread} is damaged"
        remedy = "delete it by hand, or restore a backup"
        report.findings.append(Finding("table loopwright_log", what, remedy))
    for (thread,) in cursor.execute(_STRANGE):
        report.notes.append((f"thread {thread}", "has messages waiting for its first run"))


def as_json(report: Report, mended: list[str]) -> str:
    """The report for programs, one line."""
    told: dict[str, Any] = {**vars(report), "mended": mended}
    told["findings"] = [
        {"where": f.where, "what": f.what, "remedy": f.remedy, "repairable": f.mend is not None}
        for f in report.findings
    ]
    told["notes"] = [{"where": where, "what": what} for where, what in report.notes]
    return json.dumps(told)
