"""Taking a thread out of a database and into another: what goes along, and where it is stored.

The form of the file is `state.thread_file`'s; who may do this, and when, is said in `stored`.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TextIO

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage, message_to_dict

from loopwright.calls import Outcome
from loopwright.errors import ThreadFileError
from loopwright.queues import head, waiting
from loopwright.state.database import is_open_here
from loopwright.state.journal import recall
from loopwright.state.log import Log
from loopwright.state.messages import new_id, open_calls
from loopwright.state.repair import repair
from loopwright.state.schema import Decision, RunRecord, View, held_results, no_cursor
from loopwright.state.thread_file import ThreadFile, dumped, parsed
from loopwright.state.view import moved, whole_ledger

LONGEST_NAME = 200
"""Characters of a thread's id that is taken from a file."""


@dataclass(frozen=True)
class Imported:
    """What an import came to: the thread that was made, and what was in the file.

    `torn`: the end of the file was missing, and what was there is stored. `repaired` are the counts
    of what had to be mended, empty if nothing had.
    """

    thread: str
    messages: int
    queued: int
    torn: bool
    repaired: dict[str, int]


def contents(thread: str, values: Mapping[str, Any], log: Log, *, queues: bool) -> ThreadFile:
    """What an export of a thread in this state holds; `queues`: also what waits in them."""
    cursor = values.get("cursor") or no_cursor()
    queued: list[tuple[str, AnyMessage]] = []
    if queues:
        queued += [("steering", m) for m in waiting(log, thread, "steering", cursor)]
        queued += [("follow_up", m) for m in waiting(log, thread, "follow_up", cursor)]
    messages = list(values.get("messages") or ())
    results = {**_journaled(log, thread, messages), **held_results(values.get("held"))}
    return ThreadFile(
        thread,
        messages=messages,
        system_prompt=values.get("system_prompt"),
        compaction=values.get("compaction"),
        usage=values.get("usage") or {},
        plan=values.get("plan"),
        results=list(results.values()),
        queued=queued,
    )


def _journaled(log: Log, thread: str, messages: Sequence[AnyMessage]) -> dict[str, ToolMessage]:
    """The results that the journal knows of calls that are open."""
    answer = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    waiting = open_calls(messages)
    if answer is None or not waiting:
        return {}
    known = recall(log, thread, str(answer.id))
    fates = [(call, known.fate(call)) for call in waiting]
    done = [Outcome.of(call, fate) for call, fate in fates if fate.kind == "finished"]
    return {outcome.call.id: outcome.message() for outcome in done}


def write(thread: ThreadFile, file: str | Path | TextIO) -> None:
    """Write a file: a path gets all of it or stays as it was, and is readable by its owner only.

    Raises ThreadFileError for a path that cannot be written, or where an open database is.
    """
    lines = dumped(thread, datetime.now(UTC).isoformat())
    if not isinstance(file, str | Path):
        file.writelines(lines)
        return
    path = Path(file)
    try:
        if path.exists() and is_open_here(path.stat()):
            raise ThreadFileError(str(path), "an open database is stored there")
        _write(path, lines)
    except OSError as error:
        raise ThreadFileError(str(path), error.strerror or str(error)) from error


def _write(path: Path, lines: Iterable[str]) -> None:
    with NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as unfinished:
        try:
            unfinished.writelines(lines)
            unfinished.flush()
            os.fsync(unfinished.fileno())
            os.replace(unfinished.name, path)
        except BaseException:
            os.unlink(unfinished.name)
            raise


def read(path: str | Path) -> ThreadFile:
    """What a file holds. Raises ThreadFileError, also for a file that cannot be opened."""
    try:
        if is_open_here(os.stat(path)):
            raise ThreadFileError(str(path), "this is an open database, not an exported thread")
        with open(path, "rb") as file:
            return parsed(file, str(path))
    except OSError as error:
        raise ThreadFileError(str(path), error.strerror or str(error)) from error


def name_in(found: ThreadFile, given: str | None, is_taken: Callable[[str], bool]) -> str:
    """The id of the new thread: the one given, else the file's own where that is free and fit."""
    own = found.thread
    fit = own.strip() and len(own) <= LONGEST_NAME and own.isprintable()
    return given or (own if fit and not is_taken(own) else new_id())


def mended(found: ThreadFile, *, mend: bool) -> tuple[ThreadFile, dict[str, int]]:
    """The same with a valid transcript, and what was mended."""
    if not mend:
        return found, {}
    results = {result.tool_call_id: result for result in found.results}
    messages, report = repair(found.messages, results)
    view = found.compaction
    if view is not None and (report.changed or view["start"] > len(messages)):
        view = moved(view, found.messages, messages)
    if view is not None and not _is_legal(view, messages):
        view = None
    counts = report.counts() if report.changed else {}
    return ThreadFile(**{**vars(found), "messages": messages, "compaction": view}), counts


def _is_legal(view: View, messages: Sequence[AnyMessage]) -> bool:
    """Whether what a view shows begins with no result that has lost its call (S1-08)."""
    start = view["start"]
    return start >= len(messages) or not isinstance(messages[start], ToolMessage)


def values_of(found: ThreadFile, log: Log, thread: str) -> dict[str, Any]:
    """The channels of an imported thread; no run is going on."""
    length = len(found.messages)
    last = found.messages[-1].id if found.messages else None
    record = RunRecord(
        id=new_id(),
        resumed_from=None,
        status="ended",
        sequence=0,
        turn=0,
        first=length,
        overflow=False,
    )
    values: dict[str, Any] = {
        "messages": found.messages,
        "cursor": head(log, thread),
        "decision": Decision(kind="done", about=last),
        "run": record,
        "view": found.compaction or whole_ledger(),
        "usage": found.usage,
    }
    if found.system_prompt is not None:
        values["system_prompt"] = found.system_prompt
    if found.plan is not None:
        values["plan"] = found.plan
    if found.compaction is not None:
        values["compaction"] = found.compaction
    return values


def enqueue_all(found: ThreadFile, log: Log, thread: str) -> None:
    """Append what waits to the thread's queues."""
    for queue, message in found.queued:
        log.append(thread, queue, message_to_dict(message))
