"""The text that lists files for a model: all of them, or folders with counts when they are many.

Which files there are is found by `walking`.
"""

from collections import Counter
from collections.abc import Iterable

from loopwright.tools.walking import Walk

MOST_NAMES = 10
"""Names that one note spells out."""


def listing(paths: list[str], limit: int, *, prefix: str, filtered: bool) -> str:
    """At most `limit` lines and a marker that says how much is missing and how to get it.

    Too many unfiltered files are shown as one level: the files of the folder itself, and each
    folder with the number of files below it.
    """
    lines = paths if filtered or len(paths) <= limit else _one_level(paths)
    text = [shown(prefix + line) for line in lines[:limit]]
    if len(lines) > limit:
        remedy = "narrow path or pattern, or raise limit"
        text.append(f"[{len(lines) - limit:,} of {len(lines):,} entries left out: {remedy}]")
    if lines is not paths:
        text.append(
            f"[{len(paths):,} files, more than the limit of {limit:,}: folders are shown with the "
            "number of files below them; list one of them, or give a pattern]"
        )
    return "\n".join(text)


def notes(walk: Walk, prefix: str) -> list[str]:
    """What the walk left out, one marker per reason."""
    found = []
    if walk.stopped:
        found.append(f"[stopped early, {walk.stopped}: narrow path or pattern]")
    if walk.skipped:
        found.append(
            f"[hidden and vendor folders not looked into: {names(walk.skipped, prefix)}; "
            "give one as path to look into it]"
        )
    if walk.unreadable:
        found.append(f"[folders that could not be opened: {names(walk.unreadable, prefix)}]")
    return found


def names(paths: Iterable[str], prefix: str) -> str:
    """The first few paths, and how many more there are."""
    every = [shown(prefix + path) for path in paths]
    more = f" and {len(every) - MOST_NAMES:,} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more


def shown(path: str) -> str:
    """A path on one line: a line break or the like in a name must not look like another entry."""
    if path.isprintable():
        return path
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)


def _one_level(paths: list[str]) -> list[str]:
    counts = Counter(path.partition("/")[0] + "/" for path in paths if "/" in path)
    level = dict.fromkeys(path.partition("/")[0] + "/" * ("/" in path) for path in paths)
    return [f"{name} ({counts[name]:,} files)" if name in counts else name for name in level]
