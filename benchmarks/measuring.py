"""What is measured of one contender: time, processor, storage, memory, and a cold load.

Every measurement is a process of its own; what the figures are compared to is in `claims`.
"""

import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from benchmarks.contenders import CONTENDERS
from benchmarks.work import Work

WINDOWS = 40
"""Points of the curve of times over a run."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One contender's run of many tool turns."""

    mean: float
    """Milliseconds per turn behind the very first one, which loads modules, to the run's end."""

    first: float
    """Median milliseconds of the first turns behind the very first one,"""

    last: float
    """and of the last ones: a tenth of all turns, 5 to 50."""

    cpu: float
    """Milliseconds of processor time per turn, all threads together."""

    bytes: float
    """Of the closed database, with whatever files are beside it."""

    memory: float
    """Megabytes of the process at its peak."""

    load: float
    """Milliseconds in which a reopened file gives the thread's messages; 0 if nothing was kept."""

    curve: list[float]
    """Median milliseconds per turn of equal parts of the run."""

    @classmethod
    def median(cls, runs: Sequence[Self]) -> Self:
        """The median of each figure on its own."""
        found = {
            field.name: statistics.median(getattr(run, field.name) for run in runs)
            for field in fields(cls)
            if field.name != "curve"
        }
        curve = [statistics.median(at) for at in zip(*(run.curve for run in runs), strict=True)]
        return cls(**found, curve=curve)


async def measure(name: str, turns: int) -> Figures:
    """Run one contender in this process."""
    work = Work(turns)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with CONTENDERS[name](work, path) as loop:
            gc.collect()
            cpu = time.process_time()
            await loop.run()
            ended, cpu = time.perf_counter(), time.process_time() - cpu
        memory, size = peak_memory(), stored_bytes(path)
        times = [1000 * (b - a) for a, b in pairwise([*work.model.asked, ended])]
        async with CONTENDERS[name](work, path) as loop:
            start = time.perf_counter()
            messages = await loop.load()
            load = 1000 * (time.perf_counter() - start) if messages else 0.0
        assert messages in (0, 2 * turns + 2)
    edge = max(5, min(50, turns // 10))
    return Figures(
        mean=statistics.fmean(times[1:]),
        first=statistics.median(times[1 : edge + 1]),
        last=statistics.median(times[-edge - 1 : -1]),
        cpu=1000 * cpu / turns,
        bytes=size,
        memory=memory,
        load=load,
        curve=curve(times[:turns]),
    )


def curve(times: Sequence[float]) -> list[float]:
    """The medians of up to `WINDOWS` equal parts."""
    width = max(1, len(times) // WINDOWS)
    starts = range(0, len(times) - width + 1, width)
    return [statistics.median(times[start : start + width]) for start in starts]


def stored_bytes(path: Path) -> float:
    """The size of a closed database and of what is left beside it."""
    return float(sum(file.stat().st_size for file in path.parent.iterdir()))


def peak_memory() -> float:
    """Megabytes. Linux tells it for the program that runs; `getrusage` may count its parent too."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_fresh_process(module: str, *arguments: object) -> Any:
    """What `python -m module --measure ARGUMENTS` prints as JSON, without anyone's tracing."""
    quiet = {**os.environ, "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    command = [sys.executable, "-m", module, "--measure", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=quiet)
    return json.loads(done.stdout)


def figures_of(name: str, turns: int) -> Figures:
    """One contender's figures, from a fresh process."""
    return Figures(**in_fresh_process("benchmarks.measuring", name, turns))


if __name__ == "__main__":
    _, _, contender, count = sys.argv
    print(json.dumps(asdict(asyncio.run(measure(contender, int(count))))))
