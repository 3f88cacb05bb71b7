"""A trace file read back: its runs, each with its lines.

What the lines mean to a replay is in `loopwright.replay`, how a run looks in `tree`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loopwright.errors import TraceFileError
from loopwright.telemetry.lines import FORMAT, Line

_FIELDS = {"step": int, "type": str, "run": str, "thread": str, "at": int | float}
"""What every line of a run has."""


@dataclass
class RecordedRun:
    """The lines of one run in the order of the file; `places` are their numbers in it, from 1."""

    run: str
    thread: str
    path: str
    lines: list[Line] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    @property
    def beginning(self) -> Line | None:
        """Its first line, None if the file does not hold it."""
        return self.lines[0] if self.lines[0]["type"] == "run" else None

    @property
    def end(self) -> Line | None:
        """Its last line, None for a run that was killed, or whose lines were lost."""
        return self.lines[-1] if self.lines[-1]["type"] == "end" else None

    def of(self, type: str) -> list[Line]:
        """Its lines of one type."""
        return [line for line in self.lines if line["type"] == type]


@dataclass
class RecordedTrace:
    """What a trace file holds: its runs in the order in which they began.

    `lost` counts lines that could not be written or read; `full` says that the file had reached its
    size and what came later is missing.
    """

    path: str
    runs: list[RecordedRun] = field(default_factory=list)
    lost: int = 0
    full: bool = False


def read(path: str | Path) -> RecordedTrace:
    """The runs in a trace file.

    Lines that a crash or a full disk has torn are counted and left out. Raises TraceFileError for a
    file that cannot be opened, holds no run, or was written by a later version.
    """
    trace = RecordedTrace(str(path))
    by_id: dict[str, RecordedRun] = {}
    for place, line in _lines(trace):
        if line["type"] == "run" and line.get("format") != FORMAT:
            reason = f"it has format {line.get('format')!r}, this version reads {FORMAT}"
            raise TraceFileError(trace.path, reason, line=place)
        run = by_id.get(line["run"])
        if run is None:
            run = by_id[line["run"]] = RecordedRun(line["run"], line["thread"], trace.path)
            trace.runs.append(run)
        run.lines.append(line)
        run.places.append(place)
    if not trace.runs:
        raise TraceFileError(trace.path, "it holds no run")
    return trace


def _lines(trace: RecordedTrace) -> Iterator[tuple[int, Line]]:
    try:
        with open(trace.path, "rb") as file:
            for place, text in enumerate(file, 1):
                line = _parsed(text)
                if line.get("type") == "lost":
                    trace.lost += int(line["lines"])
                elif line.get("type") == "full":
                    trace.full = True
                elif all(isinstance(line.get(name), kind) for name, kind in _FIELDS.items()):
                    yield place, line
                else:
                    trace.lost += 1
    except OSError as error:
        raise TraceFileError(trace.path, error.strerror or str(error)) from error


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}
