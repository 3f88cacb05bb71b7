"""Searches files line by line, for plain text or a regular expression, within a time budget.

Which files are gone through is decided by `walking`; how a finding looks is decided here.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

import regex  # type: ignore[import-untyped, unused-ignore]

from loopwright.tools.decoding import decoded
from loopwright.tools.listing import names, shown
from loopwright.tools.reading import MOST_TEXT, shortened

MOST_BYTES = 20_000_000
"""Size of a file that is searched; a larger one is named instead."""

MOST_PATTERN = 1000
"""Characters of a pattern."""

MOST_REPEATS = 100_000
"""What the repetition counts in a regular expression may come to when multiplied."""

MOST_SHOWN = 300
"""Characters of a found line that are shown."""

SECONDS_PER_LINE = 0.5
"""Time for a regular expression on one line; one that needs more would never end on the next."""

_COUNT = regex.compile(r"\{\s*(\d+)")

# What can make a line match by itself although the text around it does not: the edges of the text,
# assertions, flags inside the pattern, and groups and quantifiers that give nothing back.
_SEES_MORE_THAN_THE_LINE = regex.compile(r"\\[AZzGKRX]|\(\?(?!:)|\(\*|[+*?}]\+")


@dataclass(frozen=True)
class Matcher:
    """Finds a pattern. Raises TimeoutError where a regular expression takes too long."""

    in_line: Callable[[str], int]
    """Where a line matches, -1 if it does not."""
    in_text: Callable[[str], bool]
    """Whether any line of a text may match; False is certain."""


def matcher(pattern: str, *, is_regex: bool, ignore_case: bool) -> Matcher:
    """Raises ValueError for a pattern that cannot be searched for, saying why.

    While a regular expression is at work, other threads go on.
    """
    if not pattern or len(pattern) > MOST_PATTERN:
        raise ValueError(f"The pattern must have 1 to {MOST_PATTERN:,} characters.")
    if "\n" in pattern:
        raise ValueError("The pattern has more than one line: files are searched line by line.")
    if is_regex:
        return _regex_matcher(pattern, regex.IGNORECASE if ignore_case else 0)
    if ignore_case:
        folded = pattern.casefold()
        return Matcher(
            lambda line: line.casefold().find(folded), lambda text: folded in text.casefold()
        )
    return Matcher(lambda line: line.find(pattern), lambda text: pattern in text)


def _regex_matcher(pattern: str, flags: int) -> Matcher:
    # Counts are multiplied out when a pattern is compiled: a few digits could take all memory.
    if math.prod(int(count) or 1 for count in _COUNT.findall(pattern)) > MOST_REPEATS:
        raise ValueError(
            f"The counts in the pattern's braces multiply to more than {MOST_REPEATS:,}."
        )
    try:
        compiled = regex.compile(pattern, flags)
        over_lines = regex.compile(pattern, flags | regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"Not a regular expression: {error}.") from error
    line_by_line = bool(_SEES_MORE_THAN_THE_LINE.search(pattern))

    # `concurrent` frees the interpreter's lock: a slow match must not stop the event loop.
    def in_line(line: str) -> int:
        found = compiled.search(line, timeout=SECONDS_PER_LINE, concurrent=True)
        return found.start() if found else -1

    def in_text(text: str) -> bool:
        """One search in the whole text is many times faster than one in each line."""
        if line_by_line:
            return True
        try:
            found = over_lines.search(text, timeout=SECONDS_PER_LINE, concurrent=True)
        except TimeoutError:
            return True
        return found is not None

    return Matcher(in_line, in_text)


@dataclass
class Search:
    """One search: what it has found so far."""

    matcher: Matcher
    limit: int
    seconds: float
    """Time for the whole search; when it is over, the next line is one that takes too long."""
    lines: list[str] = field(default_factory=list)
    matches: int = 0
    files: int = 0
    binary: int = 0
    large: list[str] = field(default_factory=list)
    _room: int = MOST_TEXT

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    def look_into(self, file: BinaryIO, path: str) -> None:
        """Search one open file. Raises ValueError if the pattern takes too long on it."""
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            self.large.append(path)
            return
        text = decoded(file.read(MOST_BYTES))
        if text is None:
            self.binary += 1
            return
        self.files += 1
        if text and self.matcher.in_text(text):
            self._look_through(text.removesuffix("\n").split("\n"), path)

    def _look_through(self, lines: list[str], path: str) -> None:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                if time.monotonic() > self._deadline:
                    raise TimeoutError
                at = self.matcher.in_line(line)
                if at >= 0:
                    self._found(path, number, line, at)
        except TimeoutError as error:
            raise ValueError(
                f"The regular expression takes too long on {shown(path)}:{number}: make it "
                "simpler, or search for plain text."
            ) from error

    def _found(self, path: str, number: int, line: str, at: int) -> None:
        self.matches += 1
        if len(self.lines) >= self.limit or self._room <= 0:
            return
        self.lines.append(f"{shown(path)}:{number}: {shortened(line, MOST_SHOWN, at)}")
        self._room -= len(self.lines[-1])

    def report(self) -> list[str]:
        """The findings, and markers for what is not among them."""
        report = list(self.lines) or [f"[no match in {self.files:,} files]"]
        if self.matches > len(self.lines):
            report.append(
                f"[{self.matches - len(self.lines):,} of {self.matches:,} matches left out: "
                "narrow path, glob or pattern, or raise limit]"
            )
        if self.binary:
            report.append(f"[{self.binary:,} binary files not searched]")
        if self.large:
            report.append(
                f"[larger than {MOST_BYTES:,} bytes, not searched: {names(self.large, '')}]"
            )
        return report
