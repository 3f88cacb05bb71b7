"""What the texts of the file tools say: the formats of `list_files`, `read_file` and `search_text`.

Another tool of the same name may answer something else; what does not fit is left out, not guessed.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from loopwright.providers.offline.transcript import Step

_FOLDER = re.compile(r"^(?P<path>.+/) \((?P<count>[\d,]+) files\)$")
_ENTRIES = re.compile(r"^\[[\d,]+ of (?P<total>[\d,]+) entries left out: ")
_FILES = re.compile(r"^\[(?P<total>[\d,]+) files, more than the limit of ")
_MATCHES = re.compile(r"^\[(?P<left>[\d,]+) of (?P<total>[\d,]+) matches left out: ")
_NOTE = re.compile(
    r"^\[(?P<note>stopped early, [^:]+|hidden and vendor folders not looked into: .*(?=; give one)"
    r"|folders that could not be opened: .*|larger than [^:]+: .*"
    r"|[\d,]+ files that could not be opened[^:\]]*).*\]$"
)
_LINES = re.compile(
    r"^\[lines (?P<first>\d+)-(?P<last>\d+) of (?P<total>[\w ,]+?)(?P<end>[:;]) .*\]$"
)
_SPLIT = re.compile(r":(?P<line>\d+): ")
_CUT_HIT = re.compile(r"^\[[\d,]+ characters left out\] |\[[\d,]+ characters left out\]$")
CUT_PAGE = re.compile(r" \[line cut, [\d,]+ more characters: [^\]]*\]$")
"""The end of a line that `read_file` did not show whole."""


@dataclass(frozen=True)
class Listing:
    """Files and folders as one `list_files` showed them; `total` counts all files that fit.

    `whole` if the workspace itself was listed, without a pattern.
    """

    whole: bool
    pattern: str | None
    files: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]
    total: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """Some lines of a file with their numbers; `complete` if the last one is the file's last."""

    path: str
    lines: tuple[tuple[int, str], ...]
    complete: bool
    total: int | None

    @property
    def last(self) -> int:
        """The number of the last line, 0 for an empty file."""
        return self.lines[-1][0] if self.lines else 0

    def ends_at(self, line: int) -> bool:
        """Whether the file is known to end with this line."""
        return self.complete and self.last == line


@dataclass(frozen=True)
class Hit:
    """One found line."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Hits:
    """What one `search_text` found; `left_out` counts the matches that it did not show."""

    pattern: str
    lines: tuple[str, ...]
    left_out: int
    notes: tuple[str, ...]

    def resolved(self, files: Collection[str]) -> Iterator[Hit]:
        """The found lines. A name that itself looks like `a:1: b` is told apart by the listing."""
        for text in self.lines:
            splits = list(_SPLIT.finditer(text))
            known = [split for split in splits if text[: split.start()] in files]
            split = (known or splits)[0]
            yield Hit(text[: split.start()], int(split["line"]), text[split.end() :])


def is_cut(text: str) -> bool:
    """Whether a line is longer than what a search or a page shows of it."""
    return bool(_CUT_HIT.search(text) or CUT_PAGE.search(text))


def read_step(step: Step) -> Listing | Page | Hits | None:
    """What the result of a call says; None for other tools and for a form that is not known."""
    reader = {"list_files": _listing, "read_file": _page, "search_text": _hits}.get(step.call.tool)
    return reader(step) if reader is not None else None


def _listing(step: Step) -> Listing:
    files, folders, totals, notes = [], [], [], []
    for line in step.text.split("\n"):
        folder = _FOLDER.match(line)
        total = _FILES.match(line) or _ENTRIES.match(line)
        if folder:
            folders.append((folder["path"], _number(folder["count"])))
        elif total:
            totals.append(_number(total["total"]))
        elif note := _NOTE.match(line):
            notes.append(note["note"])
        elif line and line != "[no files]":
            files.append(line.removesuffix(" (link)"))
    # Entries count folders too; the note about files, when there is one, comes last.
    total_files = totals[-1] if totals else len(files)
    stopped = any(note.startswith("stopped") for note in notes)
    asked = step.call.arguments
    return Listing(
        whole=asked.get("pattern") is None and asked.get("path", ".") == ".",
        pattern=asked.get("pattern"),
        files=tuple(files),
        folders=tuple(folders),
        total=None if stopped else total_files,
        notes=tuple(notes),
    )


def _page(step: Step) -> Page | None:
    lines = step.text.split("\n")
    path = str(step.call.arguments.get("path", ""))
    first, marker = 1, _LINES.match(lines[-1])
    if marker and int(marker["last"]) - int(marker["first"]) + 1 == len(lines) - 1:
        first = int(marker["first"])
        lines.pop()
    elif lines == ["[the file is empty]"]:
        return Page(path, (), True, 0)
    elif step.call.arguments.get("start_line", 1) != 1:
        return None
    else:
        marker = None
    complete = marker is None or marker["end"] == ":"
    counted = re.sub(",", "", marker["total"]) if marker else str(len(lines))
    total = int(counted) if counted.isdigit() else None
    return Page(path, tuple(enumerate(lines, first)), complete, total)


def _hits(step: Step) -> Hits:
    found, notes, left_out = [], [], 0
    for line in step.text.split("\n"):
        if _SPLIT.search(line) and not _NOTE.match(line):
            found.append(line)
        elif more := _MATCHES.match(line):
            left_out = _number(more["left"])
        elif note := _NOTE.match(line):
            notes.append(note["note"])
    pattern = str(step.call.arguments.get("pattern", ""))
    return Hits(pattern, tuple(found), left_out, tuple(notes))


def _number(text: str) -> int:
    return int(text.replace(",", ""))
