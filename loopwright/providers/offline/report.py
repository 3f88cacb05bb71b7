"""How the offline model tells what it found: short, bounded, every finding as `file:line: text`.

What counts as a finding is decided in `marks` and `findings`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from loopwright.providers.offline.findings import Findings
from loopwright.providers.offline.marks import HINTS, Mark

SHOWN, SHOWN_HINTS, SHOWN_KINDS, TEXT = 60, 10, 8, 120
"""Marks, hints and kinds of files told one by one; characters of a line that are told."""

INTRODUCING = (
    *("readme", "about", "overview", "index"),
    *("lisezmoi", "liesmich", "leeme", "leiame", "leggimi", "自述", "说明"),
)
"""Names, without ending, of files that say what a folder is."""

DISCLAIMER = "(I am the offline model: fixed rules, not a language model.)"

KINDS = {
    ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".mjs": "JavaScript",
    ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".md": "Markdown",
    ".rst": "reStructuredText", ".txt": "text", ".rs": "Rust", ".go": "Go", ".java": "Java",
    ".kt": "Kotlin", ".c": "C", ".h": "C header", ".cpp": "C++", ".cc": "C++", ".hpp": "C++ header",
    ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".scala": "Scala", ".lua": "Lua",
    ".hs": "Haskell", ".ex": "Elixir", ".sh": "shell", ".sql": "SQL", ".html": "HTML",
    ".css": "CSS", ".json": "JSON", ".toml": "TOML", ".yaml": "YAML", ".yml": "YAML", ".csv": "CSV",
    ".xml": "XML", ".tex": "LaTeX", ".org": "Org", ".adoc": "AsciiDoc", ".ipynb": "notebook",
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".svg": "image",
}  # fmt: skip


def report(findings: Findings, before: Sequence[Mark] | None) -> str:
    """The whole answer. `before` are the marks of an earlier answer on this thread, if any."""
    marks = findings.marks()
    parts = [
        what_is_here(findings),
        what_is_left(findings, marks),
        what_changed(marks, before),
        what_was_not_seen(findings),
        DISCLAIMER,
    ]
    return "\n\n".join(part for part in parts if part)


def what_is_here(findings: Findings) -> str:
    """The kinds of files, and what the introducing file says of the folder."""
    if findings.root is None:
        return "I could not list the files of this folder."
    if findings.is_empty_folder():
        return "This folder is empty: there are no files in it."
    total, seen = findings.root.total, len(findings.files)
    count = number(total, "file") if total is not None else f"more than {number(seen, 'file')}"
    kinds = findings.kinds()
    rest = (total or seen) - sum(kinds.values())
    said = introduction(findings)
    text = f"In this folder: {count}: {_kinds(kinds, rest)}."
    return f"{text}\n{said}" if said else text


def _kinds(kinds: dict[str, int], rest: int) -> str:
    named: Counter[str] = Counter()
    for ending, count in kinds.items():
        named[KINDS.get(ending, ending or "without ending")] += count
    most = sorted(named.items(), key=lambda item: (-item[1], item[0]))
    rest += sum(count for _, count in most[SHOWN_KINDS:])
    words = [f"{count:,} {name}" for name, count in most[:SHOWN_KINDS]]
    return ", ".join([*words, *([f"{rest:,} others"] if rest > 0 else [])])


def introduction(findings: Findings) -> str:
    """The first sentence of a file that introduces the folder, cited; empty if there is none."""
    for page in findings.pages:
        if PurePosixPath(page.path).stem.lower() not in INTRODUCING:
            continue
        for line, text in page.lines:
            if re.match(r"\w", text) and len(text.split()) > 2:
                return f"{page.path}:{line}: {shortened(text)}"
    return ""


def what_is_left(findings: Findings, marks: Sequence[Mark]) -> str:
    """The marks, bounded, with honest counts of what is not listed."""
    if findings.is_empty_folder():
        return "Nothing is left to do in it."
    if not marks:
        return _nothing_marked(findings)
    files = len({mark.path for mark in marks})
    kinds = Counter(mark.kind for mark in marks)
    counted = ", ".join(_of_kind(count, kind) for kind, count in kinds.most_common())
    left_out = findings.left_out()
    least = "at least " if left_out else ""
    head = (
        f"Left to do: {least}{number(len(marks), 'thing')} in {number(files, 'file')} ({counted})."
    )
    return "\n".join([head, *listed(findings, marks), *_more(marks[SHOWN:], left_out)])


def listed(findings: Findings, marks: Sequence[Mark]) -> list[str]:
    """The first marks, one per line, each with the function or section that it is in."""
    lines = []
    for mark in marks[:SHOWN]:
        place = findings.place_of(mark)
        where = f"  (in {shortened(place)})" if place else ""
        lines.append(f"- {mark.path}:{mark.line}: {shortened(mark.text)}{where}")
    return lines


def _more(unlisted: Sequence[Mark], left_out: int) -> list[str]:
    lines = []
    if unlisted:
        files = Counter(mark.path for mark in unlisted)
        lines.append(f"... and {len(unlisted):,} more in {number(len(files), 'file')}.")
    if left_out:
        lines.append(
            f"The search counted {left_out:,} more matching lines that it did not show; "
            "ask me about one folder or file to see those."
        )
    return lines


def _nothing_marked(findings: Findings) -> str:
    if not findings.searches:
        return "I could not search the files, and nothing I read is marked as left to do."
    text = (
        "Nothing is marked as left to do: no TODO, FIXME or the like, no open box, no list of it."
    )
    hints = [
        hit
        for search in findings.searches
        if search.pattern == HINTS
        for hit in search.resolved(findings.files)
    ]
    if not hints:
        return text
    shown = [f"- {h.path}:{h.line}: {shortened(h.text)}" for h in hints[:SHOWN_HINTS]]
    more = len(hints) - len(shown)
    rest = [f"... and {more:,} more."] if more > 0 else []
    return "\n".join([text, "These lines may be hints, though they are no marks:", *shown, *rest])


def what_changed(marks: Sequence[Mark], before: Sequence[Mark] | None) -> str:
    """The difference to an earlier answer; line numbers alone do not count as one."""
    if before is None:
        return ""
    new = Counter((m.path, m.text) for m in marks)
    old = Counter((m.path, m.text) for m in before)
    came, went = (new - old).total(), (old - new).total()
    if not came and not went:
        return "Nothing has changed since my last answer on this thread."
    return f"Since my last answer on this thread: {came:,} came, {went:,} went."


def what_was_not_seen(findings: Findings) -> str:
    """Everything that the answer could not take into account; empty if there is nothing."""
    notes = [f"{step.call.tool} failed: {shortened(step.text)}" for step in findings.failed[:5]]
    notes += [note for part in findings.listings for note in part.notes]
    notes += [note for part in findings.searches for note in part.notes]
    cut = findings.undecided()
    if cut:
        notes.append(f"{number(cut, 'line')} too long to be judged from the part that is shown")
    if not findings.searches and not findings.is_empty_folder():
        notes.append("the files could not be searched; I know only those that I read")
    unread = sum(findings.is_open_ended(path, line) for path, line in findings.headings())
    if unread:
        notes.append(f"{number(unread, 'list')} not read to the end")
    if len(findings.failed) > 5:
        notes.append(f"{len(findings.failed) - 5:,} more calls failed")
    lines = [f"- {note}" for note in dict.fromkeys(notes)]
    return "\n".join(["Not taken into account:", *lines]) if lines else ""


def _of_kind(count: int, kind: str) -> str:
    """`3 TODO`, `2 open boxes`: a marked word has no plural."""
    if kind.isupper() or count == 1:
        return f"{count:,} {kind}"
    return f"{count:,} {kind}{'es' if kind.endswith('x') else 's'}"


def number(count: int, noun: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shortened(text: str) -> str:
    """A line cut to what is told of it."""
    flat = re.sub(r"\s*[\r\n]+\s*", " ", text).strip()
    return flat if len(flat) <= TEXT else flat[: TEXT - 3] + "..."
