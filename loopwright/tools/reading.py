"""The text that shows part of a file to a model: whole lines, bounded, with a marker for the rest.

Opening the file is `workspace`'s, its encoding `decoding`'s business.
"""

import io
import time
from dataclasses import dataclass

MOST_LINE = 2000
"""Characters of one line that are shown."""

MOST_TEXT = 60_000
"""Characters that one answer shows."""

SECONDS_TO_COUNT = 2.0
"""Time for finding the start in a very large file, and again for counting what is left of it."""

_PIECE = 1 << 16


@dataclass(frozen=True)
class Page:
    """Some lines of a file. `total` is None if the file was too large to count them."""

    lines: list[str]
    first: int
    total: int | None

    @property
    def last(self) -> int:
        """The number of the last line shown."""
        return self.first + len(self.lines) - 1

    def text(self) -> str:
        """The lines, and a marker unless they are the whole file."""
        return "\n".join([*self.lines, *self._marker()])

    def _marker(self) -> list[str]:
        if self.total == 0:
            return ["[the file is empty]"]
        if self.first == 1 and self.last == self.total:
            return []
        shown = f"lines {self.first}-{self.last} of {self._counted()}"
        if self.last == self.total:
            return [f"[{shown}: the end of the file]"]
        left = f"{self.total - self.last:,} lines" if self.total is not None else "more lines"
        return [f"[{shown}; {left} left: read on with start_line={self.last + 1}]"]

    def _counted(self) -> str:
        return f"{self.total:,}" if self.total is not None else "a very large file"


def page(text: io.TextIOWrapper, start_line: int, limit_lines: int) -> Page:
    """The lines from `start_line` on, as many as were asked for and as MOST_TEXT allows.

    At least one line is shown. Memory does not grow with the file. Raises ValueError for a start
    behind the end, or one that lies too far into a very large file.
    """
    _skip(text, start_line - 1)
    lines: list[str] = []
    room = MOST_TEXT
    while len(lines) < limit_lines and room > 0:
        line = _line(text)
        if line is None:
            break
        lines.append(line)
        room -= len(line)
    if not lines and start_line > 1:
        raise ValueError(f"The file has only {start_line - 1:,} lines.")
    left = _count(text)
    total = None if left is None else start_line - 1 + len(lines) + left
    return Page(lines, start_line, total)


def shortened(line: str, most: int, at: int = 0) -> str:
    """A line that is longer than `most` characters cut to the part around `at`, with marks."""
    if len(line) <= most:
        return line
    start = max(0, min(at - most // 4, len(line) - most))
    end = start + most
    before = f"[{start:,} characters left out] " if start else ""
    after = f" [{len(line) - end:,} characters left out]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def _line(text: io.TextIOWrapper) -> str | None:
    """The next line without its end, cut if it is long; None at the end of the file."""
    line = text.readline(MOST_LINE + 1)
    if len(line) <= MOST_LINE or line.endswith("\n"):
        return line.removesuffix("\n") if line else None
    more = 1
    while piece := text.readline(_PIECE):
        more += len(piece.removesuffix("\n"))
        if piece.endswith("\n"):
            break
    return f"{line[:MOST_LINE]} [line cut, {more:,} more characters: search_text looks into it]"


def _skip(text: io.TextIOWrapper, lines: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_COUNT
    passed = 0
    piece = "\n"
    while passed < lines:
        unfinished = not piece.endswith("\n")
        piece = text.readline(_PIECE)
        if not piece:
            raise ValueError(f"The file has only {passed + unfinished:,} lines.")
        passed += piece.endswith("\n")
        if time.monotonic() > deadline:
            raise ValueError(
                f"Line {lines + 1:,} is too far into this file: within {SECONDS_TO_COUNT:g} "
                f"seconds only line {passed:,} was reached. Search for what you look for instead."
            )


def _count(text: io.TextIOWrapper) -> int | None:
    """How many lines are left; None if counting took too long."""
    deadline = time.monotonic() + SECONDS_TO_COUNT
    lines = 0
    last = "\n"
    while piece := text.read(_PIECE):
        lines += piece.count("\n")
        last = piece
        if time.monotonic() > deadline:
            return None
    return lines + (not last.endswith("\n"))
