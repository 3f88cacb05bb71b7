"""Patterns for file names, as in a shell: `*.py`, `src/**/*.ts`, `*.{yml,yaml}`.

Which files they are held against is the business of `walking` and its callers.
"""

import re
from fnmatch import fnmatchcase

MOST_ALTERNATIVES = 64
"""Patterns that the braces of one may stand for."""

_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """One pattern. Without a slash it is held against the name, with one against the whole path.

    `*` and `?` stay within a name, `**` stands for any folders, `{a,b}` for either. Case counts.
    Raises ValueError for a blank pattern and for too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        if not pattern.strip():
            raise ValueError("The pattern is blank: leave it out to take every file.")
        self._alternatives = [_steps(one) for one in _expanded(pattern)]

    def matches(self, path: str) -> bool:
        """Whether the pattern fits a path relative to the folder that is looked through."""
        names = path.split("/")
        return any(_fits(steps, names) for steps in self._alternatives)


def _expanded(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
            continue
        before, after = one[: braces.start()], one[braces.end() :]
        waiting += [before + choice + after for choice in braces[1].split(",")]
        if len(waiting) + len(done) > MOST_ALTERNATIVES:
            raise ValueError(f"The pattern has more than {MOST_ALTERNATIVES} alternatives.")
    return done


def _steps(pattern: str) -> list[str]:
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    return steps if "/" in pattern.removeprefix("./") else ["**", *steps]


def _fits(steps: list[str], names: list[str]) -> bool:
    """Follows all ways through the steps at once, so that many `**` take no longer."""
    at = _past_folders(steps, {0})
    for name in names:
        following = set()
        for index in at:
            if index < len(steps) and steps[index] == "**":
                following.add(index)
            elif index < len(steps) and fnmatchcase(name, steps[index]):
                following.add(index + 1)
        at = _past_folders(steps, following)
    return len(steps) in at


def _past_folders(steps: list[str], at: set[int]) -> set[int]:
    """`**` may also stand for no folder at all."""
    reached = set(at)
    for index in sorted(at):
        while index < len(steps) and steps[index] == "**":
            index += 1
            reached.add(index)
    return reached
