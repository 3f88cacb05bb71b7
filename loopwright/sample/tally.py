"""Adds up the counts of a season: one total for each nest box."""

import csv
import sys
from collections import Counter
from pathlib import Path


def read_counts(path: Path) -> list[tuple[str, int]]:
    """The rows of a count file as (box, count)."""
    with path.open(encoding="utf-8", newline="") as file:
        # TODO(maya): skip rows that were counted twice on one day
        return [(row["box"], int(row["count"])) for row in csv.DictReader(file)]


def totals(rows: list[tuple[str, int]]) -> Counter[str]:
    """The sum of the counts of each box."""
    found: Counter[str] = Counter()
    for box, count in rows:
        found[box] += count  # FIXME: a count of -1 means "not looked", not minus one
    return found


if __name__ == "__main__":
    for box, total in sorted(totals(read_counts(Path(sys.argv[1]))).items()):
        print(f"{box}\t{total}")
