"""Runs report cases: `python -m tests.conformance.reports [FILE [KIND...]]`.

Without kinds every case of the file is run; without a file, the copies in `tests/data`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.kinds import KINDS
from tests.conformance.running import Case, Driver, driver_of, missing, run

COPIES = Path(__file__).parents[1] / "data" / "cases" / "reports.jsonl"


def cases(file: Path, kinds: list[str]) -> Iterator[tuple[Case, Driver]]:
    """The cases of these kinds (of all, if none is named) with the drivers that run them."""
    lines = file.read_text(encoding="utf-8").split("\n")  # a text may hold other line breaks
    rows = [json.loads(line) for line in lines if line.strip()]
    there = {row["kind"] for row in rows}
    for kind in kinds:
        if kind not in there:
            yield Case(kind, {}, {}), missing(f"no case of this kind in {file}")
    for row in rows:
        if not kinds or row["kind"] in kinds:
            case = Case(row["id"], row["input"], row["expect"])
            yield case, driver_of(row["kind"], KINDS, "kind")


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else COPIES
    sys.exit(run(cases(file, sys.argv[2:])))
