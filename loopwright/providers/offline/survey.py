"""The offline model's way through a folder: which calls come next, given what is known.

Each phase is a pure function from the findings to calls; a call that was made is not made again,
so a survey always ends, after at most one turn for each phase and page. What was found is told in
`report`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from loopwright.providers.offline.findings import Findings, is_task_file
from loopwright.providers.offline.marks import HINTS, LISTS_PATTERN, WORDS_PATTERN, is_prose
from loopwright.providers.offline.report import INTRODUCING
from loopwright.providers.offline.transcript import Call, Step

LIST, READ, SEARCH = "list_files", "read_file", "search_text"
"""The tools that a survey uses, as far as it is offered them."""

FIRST_FILES, MOST_READS, MOST_PAGES = 3, 16, 4
"""How many files are read for a first impression, how often one reads in all, pages of one file."""

LISTED, FOLDERS, SAMPLED, KINDS, FOUND = 500, 4, 50, 8, 1000
"""Files of a listing, folders looked into beside it and files of each, endings, lines found."""

WANTED = "{README,readme,Readme,TODO,todo,Todo,TASKS,tasks,Tasks,BACKLOG,backlog}*"

PAGE, AROUND = 80, 40
"""Lines read of a file for a first impression, and around a mark (a quarter of them above it)."""

MANIFESTS = {
    "pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml", "Gemfile",
    "composer.json", "CMakeLists.txt", "Makefile", "build.gradle", "mix.exs", "DESCRIPTION",
}  # fmt: skip

BINARY = set(
    ".png .jpg .jpeg .gif .webp .ico .bmp .tiff .pdf .zip .gz .tgz .xz .bz2 .7z .jar .war .so "
    ".dll .dylib .exe .bin .dat .o .a .class .pyc .wasm .db .sqlite .mp3 .mp4 .wav .ogg .woff "
    ".woff2 .ttf .otf .parquet .npy .npz .pt .safetensors .gguf .docx .xlsx .pptx .odt".split()
)
"""Endings of files that are not opened for a first impression."""

Phase = Callable[[Findings], list[Call]]


def next_calls(steps: Sequence[Step], offered: set[str]) -> tuple[str, list[Call]]:
    """What to do next, in words and calls; no calls once everything was looked at."""
    findings = Findings(steps)
    made = [step.call for step in steps]
    for words, phase in PHASES:
        calls = [c for c in phase(findings) if c.tool in offered and c not in made]
        if calls:
            return words, calls
    return "", []


def list_folder(findings: Findings) -> list[Call]:
    """List everything."""
    return [Call(LIST, {"limit": LISTED})]


def list_many(findings: Findings) -> list[Call]:
    """Where there are more files than a listing shows: look into the largest folders."""
    if findings.root is None or findings.is_listed():
        return []
    folders = sorted(findings.root.folders, key=lambda folder: (-folder[1], folder[0]))
    flat = {"pattern": "*", "limit": SAMPLED}
    inside = [Call(LIST, {"path": path.rstrip("/"), **flat}) for path, _ in folders[:FOLDERS]]
    return [*inside, Call(LIST, {"pattern": WANTED, "limit": 20})]


def count_kinds(findings: Findings) -> list[Call]:
    """Where there are more files than a listing shows: count them by their ending."""
    if findings.root is None or findings.is_listed():
        return []
    endings = Counter(PurePosixPath(path).suffix for path in findings.files)
    named = [ending for ending, _ in endings.most_common() if re.fullmatch(r"\.\w+", ending)]
    return [Call(LIST, {"pattern": f"*{ending}", "limit": 1}) for ending in named[:KINDS]]


def first_impression(findings: Findings) -> list[Call]:
    """Read what introduces the folder, and files that are lists of open work."""
    files = list(findings.files)
    readable = [path for path in files if not _is_binary(path)]
    first = sorted(readable, key=_introduces)[:FIRST_FILES]
    tasks = [path for path in readable if is_task_file(path)][:FIRST_FILES]
    return [_read(path, 1, PAGE) for path in dict.fromkeys([*first, *tasks])]


def search_marks(findings: Findings) -> list[Call]:
    """Search for marked words, and for open boxes and headings of lists."""
    if findings.is_empty_folder():
        return []
    return [_search(pattern) for pattern in (WORDS_PATTERN, LISTS_PATTERN)]


def look_closer(findings: Findings) -> list[Call]:
    """Read the lists that headings begin, then around the first mark of each file."""
    places = [(p, n, n) for p, n in findings.headings() if findings.is_open_ended(p, n)]
    read = {page.path for page in findings.pages} | {path for path, *_ in places}
    for mark in findings.marks():
        if mark.path not in read:
            read.add(mark.path)
            places.append((mark.path, mark.line, max(1, mark.line - AROUND // 4)))
    return _within_reason(findings, [_read(path, start, AROUND) for path, _, start in places])


def read_on(findings: Findings) -> list[Call]:
    """Read the next page of lists that went on behind the end of one."""
    unfinished = {path for path, n in findings.headings() if findings.is_open_ended(path, n)}
    calls = []
    for path in dict.fromkeys(page.path for page in findings.pages):
        pages = [page for page in findings.pages if page.path == path]
        last = max(pages, key=lambda page: page.last)
        wanted = path in unfinished or is_task_file(path)
        if wanted and not last.complete and len(pages) < MOST_PAGES:
            calls.append(_read(path, last.last + 1, PAGE))
    return _within_reason(findings, calls)


def look_for_hints(findings: Findings) -> list[Call]:
    """Where nothing is marked: search for weaker signs."""
    if findings.is_empty_folder() or findings.marks() or not findings.searches:
        return []
    return [_search(HINTS)]


PHASES: tuple[tuple[str, Phase], ...] = (
    ("I list the files.", list_folder),
    ("There are many files; I look into the largest folders.", list_many),
    ("I count the files by kind.", count_kinds),
    ("I read what introduces the folder.", first_impression),
    ("I search for marks of open work, and for open boxes and lists.", search_marks),
    ("I look at the places that I found.", look_closer),
    ("I read on where a list goes on.", read_on),
    ("Nothing is marked; I search for weaker signs.", look_for_hints),
)
"""The phases in order; the first one that has a call to make is the next turn."""


def _read(path: str, start: int, lines: int) -> Call:
    return Call(READ, {"path": path, "start_line": start, "limit_lines": lines})


def _search(pattern: str) -> Call:
    return Call(SEARCH, {"pattern": pattern, "regex": True, "limit": FOUND})


def _within_reason(findings: Findings, calls: list[Call]) -> list[Call]:
    """As many of the calls as the bound on reading leaves; half of it at most in one turn."""
    done = sum(step.call.tool == READ for step in findings.steps)
    return calls[: min(MOST_READS - done, MOST_READS // 2)] if done < MOST_READS else []


def _introduces(path: str) -> tuple[int, int, str]:
    """Sorts what introduces a folder to the front: README, manifest, prose, near the top."""
    name, depth = PurePosixPath(path), path.count("/")
    if name.stem.lower() in INTRODUCING:
        rank = 0
    elif name.name in MANIFESTS:
        rank = 1
    else:
        rank = 2 if is_prose(path) and name.suffix else 3
    return (rank + depth, rank, path)


def _is_binary(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in BINARY
