"""Plays the recorded scenarios: `python -m tests.conformance.pi [DIR [NAME...]]`.

Without names every scenario of the folder is played; without a folder, the copies in `tests/data`.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.conformance.pi.deviations import Deviation, deviations, excused, stale
from tests.conformance.pi.playing import fault, is_raw
from tests.conformance.pi.shorthand import Json
from tests.conformance.pi.variants import VARIANTS, Variant

ROOT = Path(__file__).parents[3]
COPIES = ROOT / "tests" / "data" / "pi"
PROCESSES = 2
AT_ONCE = 6
"""Cases that a process takes at a time."""

Outcome = tuple[Json, Variant, str | None]


def cases(folder: Path, names: Sequence[str] = ()) -> list[Json]:
    """The cases of these names, of all of the folder if there are none."""
    files = [folder / f"{name}.json" for name in names] or sorted(folder.glob("*.json"))
    return [{**_read(file), "name": file.stem} for file in files]


def _read(file: Path) -> Json:
    """A recorded case; nothing of one that is not there, which then fails."""
    case: Json = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return case


def outcomes(played: Sequence[Json]) -> Iterator[Outcome]:
    """Play the cases in all variants, in several processes; what is wrong with each, in order."""
    pairs = [
        (case, variant)
        for variant in VARIANTS
        for case in played
        if not (variant.is_interrupted and is_raw(case.get("scenario", {})))
    ]
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        faults = pool.map(fault, *zip(*pairs, strict=True), chunksize=AT_ONCE)
        for (case, variant), wrong in zip(pairs, faults, strict=True):
            yield case, variant, wrong


def tell(played: Sequence[Json], results: Sequence[Outcome], rows: Sequence[Deviation]) -> int:
    """Print what fails, a line for each variant, and the count; the exit status."""
    for variant in VARIANTS:
        _tell_variant(variant, [result for result in results if result[1] is variant], rows)
    failed = {case["name"] for case, _, wrong in results if wrong is not None}
    outdated = stale(rows, failed, {case["name"] for case in played}, ROOT)
    for line in outdated:
        print(line)
    print(f"{len(played)} cases, {len(played) - len(failed)} passed")
    unexcused = {name for name in failed if excused(name, rows) is None}
    return 1 if unexcused or outdated or not played else 0


def _tell_variant(variant: Variant, results: Sequence[Outcome], rows: Sequence[Deviation]) -> None:
    passed = 0
    for case, _, wrong in results:
        passed += wrong is None
        if wrong is not None:
            row = excused(case["name"], rows)
            note = f" (deviation: {row.rule})" if row else ""
            print(_on_one_line(f"FAIL {case['name']} [{variant.name}] {wrong}{note}"))
    note = "; raw loops have no checkpointer" if variant.is_interrupted else ""
    print(f"{variant.name}: {len(results)} played, {passed} passed{note}")


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").encode("utf-8", "backslashreplace").decode("utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit status is 0 if all passed or every failure is a deviation."""
    played = cases(Path(arguments[0]) if arguments else COPIES, arguments[1:])
    return tell(played, list(outcomes(played)) if played else [], deviations())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
