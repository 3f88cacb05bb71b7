"""The rows of `pi_deviations.toml`: rules of the original that are not followed, and why.

A row excuses its scenarios, it does not make them pass; one that excuses nothing is stale.
"""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "pi_deviations.toml"


@dataclass(frozen=True)
class Deviation:
    """One row: in which scenarios which rule of the original is not followed.

    `harm` is what the rule does to a user, `ours` what happens instead, `test` the pytest id (a
    file and a test in it) that shows the harm.
    """

    scenarios: tuple[str, ...]
    rule: str
    harm: str
    ours: str
    test: str


def deviations(file: Path = FILE) -> list[Deviation]:
    """The rows of the file. Raises TypeError for one with other fields than a Deviation's."""
    rows = tomllib.loads(file.read_text(encoding="utf-8")).get("deviation", [])
    return [Deviation(**{**row, "scenarios": tuple(row["scenarios"])}) for row in rows]


def excused(name: str, rows: Sequence[Deviation]) -> Deviation | None:
    """The row that speaks of a scenario."""
    return next((row for row in rows if name in row.scenarios), None)


def stale(
    rows: Sequence[Deviation], failures: Collection[str], played: Collection[str], root: Path
) -> list[str]:
    """What is wrong with the rows: scenarios that pass, tests that are not there."""
    found = [
        f"STALE {name}: it passes, but deviates by rule {row.rule!r}"
        for row in rows
        for name in row.scenarios
        if name in played and name not in failures
    ]
    return found + [f"STALE {row.rule!r}: no test {row.test}" for row in rows if _lacks(row, root)]


def _lacks(row: Deviation, root: Path) -> bool:
    file, _, name = row.test.partition("::")
    path = root / file
    return not path.is_file() or f"def {name}(" not in path.read_text(encoding="utf-8")
