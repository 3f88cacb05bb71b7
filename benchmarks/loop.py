"""`python -m benchmarks.loop`: milliseconds per tool turn of our loop and of plain ones.

Every run is a fresh process, the contenders take turns, and medians and ratios are printed.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.work import TurnModel

EDGE = 20
"""Turns at either end whose mean is shown as `first` and `last`."""

Row = dict[str, float]


def measure(name: str, turns: int) -> Row:
    """Run one contender in this process."""
    model = TurnModel(turns=turns)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.db"
        began, cpu = time.perf_counter(), time.process_time()
        asyncio.run(CONTENDERS[name](model, database))
        total, cpu = time.perf_counter() - began, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    asked = model.asked
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    return {
        "mean": total / turns * 1000,
        "first": statistics.mean(gaps[:EDGE]) * 1000,
        "last": statistics.mean(gaps[-EDGE:]) * 1000,
        "cpu": cpu / turns * 1000,
        "bytes": float(size),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_fresh_process(name: str, turns: int) -> Row:
    """`measure` in a process of its own, without anyone's tracing."""
    command = [sys.executable, "-m", "benchmarks.loop", "--measure", name, "--turns", str(turns)]
    quiet = {**os.environ, "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=quiet)
    row: Row = json.loads(done.stdout)
    return row


def compare(turns: int, repeats: int) -> None:
    """Print a table of medians, each with its ratio to the floor."""
    rows: dict[str, list[Row]] = {name: [] for name in CONTENDERS}
    for _ in range(repeats):
        for name in CONTENDERS:
            rows[name].append(in_fresh_process(name, turns))
    medians = {
        name: {key: statistics.median(row[key] for row in found) for key in found[0]}
        for name, found in rows.items()
    }
    print(f"\n{turns} tool turns, median of {repeats} (ms per turn; ratio to floor in brackets)")
    print(f"{'':14}{'mean':>16}{'first':>8}{'last':>8}{'cpu':>8}{'database KB':>13}{'MB':>6}")
    for name, row in medians.items():
        ratio = row["mean"] / medians["floor"]["mean"]
        mean = f"{row['mean']:.2f} ({ratio:.1f}x)"
        print(
            f"{name:14}{mean:>16}{row['first']:>8.2f}{row['last']:>8.2f}{row['cpu']:>8.2f}"
            f"{row['bytes'] / 1024:>13.0f}{row['memory']:>6.0f}"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.turns[0])))
        return
    for turns in arguments.turns:
        compare(turns, arguments.repeats)


if __name__ == "__main__":
    main()
