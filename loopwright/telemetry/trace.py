"""A trace: every step of the runs that it observes, one line of JSON each, in one file.

What a line holds is decided in `lines`; reading and replaying traces is done in `reading` and
`loopwright.replay`.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from loopwright.clock import Clock, SystemClock
from loopwright.errors import ConfigurationError
from loopwright.runs import Run
from loopwright.settings import Environment
from loopwright.state.messages import calls
from loopwright.telemetry.file import FILE_BYTES, TraceFile
from loopwright.telemetry.lines import FIELD_CHARACTERS, Line, Lines, encoded
from loopwright.telemetry.recording import CUT_OFF, Recorder
from loopwright.telemetry.redaction import Secrets, held
from loopwright.telemetry.steps import Step

THREADS_KNOWN = 64
"""Threads whose last state is remembered, so that the next run does not repeat the history."""


class Trace:
    """An observer of runs: `Agent(..., observers=[Trace("runs.jsonl")])`, or `trace="runs.jsonl"`.

    Appends to the file, which only its owner may read. `secrets` are further values that no line
    may hold, beside the keys that the runtime knows. `field_characters` bounds each field of a
    line, `file_bytes` the file. Raises ConfigurationError. A disk that is full never ends a run:
    the lines are lost, and their number is told by the next one.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        secrets: Iterable[str] = (),
        field_characters: int = FIELD_CHARACTERS,
        file_bytes: int = FILE_BYTES,
        environment: Environment | None = None,
        clock: Clock | None = None,
    ) -> None:
        for name, value in (("field_characters", field_characters), ("file_bytes", file_bytes)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} is {value!r}: use a whole number", field=name)
        self._file = TraceFile(path, file_bytes)
        self._characters = field_characters
        self._clock = clock or SystemClock()
        self._secrets = Secrets([*secrets, *held(environment or Environment(), os.environ)])
        self._left: OrderedDict[str, _Left] = OrderedDict()

    def __call__(self, run: Run) -> None:
        """Follow a run that has not begun yet."""
        Recorder.watch(run, [_RunLines(self, run.thread)], self._clock)

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def close(self) -> None:
        """Write what is left, and let the file go."""
        self._file.close()

    def _append(self, line: Line) -> None:
        self._file.append(encoded(line))

    def _same(self, thread: str, history: Sequence[BaseMessage]) -> str | None:
        """The run in this file that has left the thread as it is now."""
        left = self._left.pop(thread, None)
        lost = self._file.lost
        return left.run if left and not lost and left.marks == _marks(history) else None

    def _leave(self, step: Step) -> None:
        """Remember how a run leaves its thread, unless it is not known how it found it."""
        history = step.data["history"]
        if history is None or step.data["status"] == CUT_OFF:
            return
        self._left[step.thread] = _Left(step.run, _marks([*history, *step.data["produced"]]))
        while len(self._left) > THREADS_KNOWN:
            self._left.popitem(last=False)


class _Left:
    def __init__(self, run: str, marks: list[Any]) -> None:
        self.run, self.marks = run, marks


class _RunLines(Lines):
    """The lines of one run in the file of a trace."""

    def __init__(self, trace: Trace, thread: str) -> None:
        super().__init__(
            trace._append,
            trace._secrets,
            trace._characters,
            lambda history: trace._same(thread, history),
        )
        self._trace = trace

    def ended(self, step: Step) -> None:
        super().ended(step)
        if step.type == "run":
            self._trace._leave(step)

    async def settled(self) -> None:
        await self._trace._file.settled()


def _marks(messages: Iterable[BaseMessage]) -> list[Any]:
    """What tells a message from an edited one with the same id."""
    return [
        (m.id, hash(f"{m.content}{[(c.name, c.arguments) for c in calls(m)]}")) for m in messages
    ]
