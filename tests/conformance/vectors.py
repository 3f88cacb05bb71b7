"""Runs vector suites: `python -m tests.conformance.vectors [DIR [SUITE...]]`.

Without suites every file of the folder is run; without a folder, the copies in `tests/data`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.builders import expand
from tests.conformance.running import Case, Driver, driver_of, missing, run
from tests.conformance.suites import SUITES

COPIES = Path(__file__).parents[1] / "data" / "vectors"


def cases(folder: Path, suites: list[str]) -> Iterator[tuple[Case, Driver]]:
    """The vectors of these suites (of all, if none is named) with the drivers that run them."""
    for suite in suites or sorted(path.stem for path in folder.glob("*.json")):
        file = folder / f"{suite}.json"
        if not file.is_file():
            yield Case(suite, {}, {}), missing(f"no such suite: {file} is not there")
            continue
        driver = driver_of(suite, SUITES, "suite")
        for vector in json.loads(file.read_text(encoding="utf-8"))["vectors"]:
            yield _expanded(vector, driver)


def _expanded(vector: dict[str, Any], driver: Driver) -> tuple[Case, Driver]:
    """The vector's case with its driver; one with an unknown builder fails."""
    try:
        given, expected = expand(vector["input"]), expand(vector["expected"])
    except ValueError as error:
        return Case(vector["id"], {}, {}), missing(str(error))
    return Case(vector["id"], given, expected), driver


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else COPIES
    sys.exit(run(cases(folder, sys.argv[2:])))
