"""What the tool results of one question have shown, and the marks in it.

What to look at next is decided in `survey`, how it is told in `report`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from loopwright.providers.offline.marks import HINTS, Mark, heading, is_prose, item_of, mark_of
from loopwright.providers.offline.results import CUT_PAGE, Hits, Listing, Page, is_cut, read_step
from loopwright.providers.offline.transcript import Step

TASK_FILE = re.compile(r"^(to[-_ ]?do|tasks?|backlog)s?$", re.IGNORECASE)
"""Names, without ending, of files that are a list of open work from top to bottom."""

_ITEM = re.compile(r"^\s*(?:>\s*)*(?:[-*+•]|\d+[.)])\s")
_LEADER = re.compile(r"^\s*(?:#+|//+|\*+|--+|;+|%+)(?= |$)")
_TITLE = re.compile(r"^\s*(?:=+|\*\*)\s*\S")
_UNDERLINE = re.compile(r"^\s*(?:-{3,}|={3,}|~{3,})\s*$")
_DEFINITION = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|pub|final|abstract)\s+)*"
    r"(?:def|class|function|fn|func|fun|sub|struct|interface|trait|impl|module|enum)\s+(?P<name>[\w.:]+)"
)
_SECTION = re.compile(r"^#{1,6}\s+(?P<name>\S.*?)\s*#*$")


class Findings:
    """All that is known after some steps. Built anew for every request: nothing is remembered."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.files: dict[str, None] = {}
        self.listings: list[Listing] = []
        self.searches: list[Hits] = []
        self.pages: list[Page] = []
        self.lines: dict[str, dict[int, str]] = {}
        self.failed = [step for step in steps if step.failed]
        for step in steps:
            if not step.failed:
                self._take(read_step(step))

    @property
    def root(self) -> Listing | None:
        """The listing of the whole folder."""
        return next((found for found in self.listings if found.whole), None)

    def is_empty_folder(self) -> bool:
        """Whether the folder is known to hold no files."""
        return self.root is not None and self.root.total == 0

    def is_listed(self) -> bool:
        """Whether every file of the folder is known by name."""
        return self.root is not None and self.root.total == len(self.root.files)

    def kinds(self) -> dict[str, int]:
        """How many files there are of each ending, as far as that is known."""
        if self.is_listed():
            return Counter(PurePosixPath(path).suffix.lower() for path in self.files)
        return {
            found.pattern.removeprefix("*"): found.total or 0
            for found in self.listings
            if found.pattern is not None and found.pattern.startswith("*.")
        }

    def _take(self, part: Listing | Page | Hits | None) -> None:
        if isinstance(part, Listing):
            self.listings.append(part)
            self.files.update(dict.fromkeys(part.files))
        elif isinstance(part, Page):
            self.pages.append(part)
            for number, text in part.lines:
                self._know(part.path, number, text)
        elif isinstance(part, Hits):
            self.searches.append(part)
            for hit in part.resolved(self.files):
                self._know(hit.path, hit.line, hit.text)

    def _know(self, path: str, number: int, text: str) -> None:
        """Keep a line; a whole one is kept, and of two cut ones what a search showed of it."""
        known = self.lines.setdefault(path, {})
        before = known.get(number)
        if before is None or CUT_PAGE.search(before) or not is_cut(text):
            known[number] = text

    def left_out(self) -> int:
        """How many lines the searches counted but did not show."""
        return sum(search.left_out for search in self.searches)

    def undecided(self) -> int:
        """How many found lines are shown only in part, with no mark in that part."""
        hits = (hit for s in self.searches if s.pattern != HINTS for hit in s.resolved(self.files))
        return sum(
            is_cut(hit.text) and mark_of(hit.path, hit.line, hit.text) is None for hit in hits
        )

    def marks(self) -> list[Mark]:
        """Everything left to do that is known, each line once, by file and line."""
        found: dict[tuple[str, int], Mark] = {}
        for path, lines in self.lines.items():
            for number in sorted(lines):
                for mark in self._marks_at(path, number, lines[number]):
                    found.setdefault((path, mark.line), mark)
        return sorted(found.values())

    def _marks_at(self, path: str, number: int, text: str) -> Iterator[Mark]:
        if heading(path, text):
            items = list(self.items_below(path, number))
            yield from items or [Mark(path, number, "heading", text.strip())]
        elif is_task_file(path):
            item = item_of(path, number, text, bare=True)
            if item is not None:
                yield item
        else:
            mark = mark_of(path, number, text)
            if mark is not None:
                yield mark

    def headings(self) -> list[tuple[str, int]]:
        """Where a list of open work begins."""
        return [
            (path, number)
            for path, lines in sorted(self.lines.items())
            for number in sorted(lines)
            if heading(path, lines[number])
        ]

    def items_below(self, path: str, number: int) -> Iterator[Mark]:
        """The open items of the list that a heading begins, as far as its lines are known."""
        for line, text in self._section(path, number):
            item = item_of(path, line, text)
            if item is not None:
                yield item

    def _section(self, path: str, number: int) -> Iterator[tuple[int, str]]:
        """The lines of a section up to the next title of its rank, or the end of what is known."""
        lines, line = self.lines[path], number + 1
        in_comment = not is_prose(path) and _LEADER.match(lines[number]) is not None
        title = _without_leader(lines[number]) if in_comment else lines[number]
        bullets = gap = False
        while line in lines:
            text = _without_leader(lines[line]) if in_comment else lines[line]
            if text is None or _ends(text, title or "", bullets or gap):
                return
            gap = gap or (line > number + 1 and not text.strip())
            bullets = bullets or bool(_ITEM.match(text))
            yield line, text
            line += 1

    def is_open_ended(self, path: str, number: int) -> bool:
        """Whether the section of a heading may go on behind the lines that are known."""
        last = max((line for line, _ in self._section(path, number)), default=number)
        ended = any(page.path == path and page.ends_at(last) for page in self.pages)
        return last + 1 not in self.lines[path] and not ended

    def place_of(self, mark: Mark) -> str:
        """The function, class or section around a mark, as far as the lines above it are known."""
        prose, lines, number = is_prose(mark.path), self.lines[mark.path], mark.line - 1
        rule, indent = _SECTION if prose else _DEFINITION, _indent(lines[mark.line])
        while number in lines:
            found = rule.match(lines[number])
            if found and (prose or _indent(lines[number]) < indent):
                return found["name"]
            number -= 1
        return ""


def is_task_file(path: str) -> bool:
    """Whether a file is by its name a list of open work: TODO.md, tasks.txt."""
    return is_prose(path) and bool(TASK_FILE.match(PurePosixPath(path).stem))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _rank(text: str) -> int:
    """How high a title stands: 1 for #, 2 for ##; 0 for one without signs."""
    found = re.match(r"^\s*(#{1,6})\s", text)
    return len(found[1]) if found else 0


def _without_leader(text: str) -> str | None:
    """A line of a comment without its sign; None if it is not one."""
    found = _LEADER.match(text)
    return text[found.end() :] if found else None


def _ends(text: str, title: str, only_items: bool) -> bool:
    """Whether a line below a title no longer belongs to its list.

    Prose may introduce the list; behind an empty line or an item (`only_items`) it ends it.
    """
    if not text.strip() or _UNDERLINE.match(text) or _ITEM.match(text):
        return False
    rank, below = _rank(title), _rank(text)
    if below:
        return not rank or below <= rank
    return bool(_TITLE.match(text)) or (only_items and _indent(text) <= _indent(title))
