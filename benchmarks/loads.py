"""`python -m benchmarks.loads`: many threads at once, in several processes on one file and in one.

Errors are counted, never retried; the ratio of speeds is of one run, in which the contenders take
turns.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import page, peers
from benchmarks.claims import Claim
from benchmarks.contenders import our_agent
from benchmarks.measuring import in_fresh_process
from benchmarks.work import Work, payload

TEXTS = [payload(number) for number in range(50)]
READY, GO = "ready\n", "go\n"
CONTENDERS = ("ours", "create_agent")
PROCESSES, SHARED_THREADS, SHARED_TURNS = 4, 50, 10
THREADS, TURNS = 1000, 5
FASTER = 1.3
"""How many times the turns per second of `create_agent` are promised."""


async def together(runs: Sequence[Awaitable[object]]) -> tuple[float, list[str]]:
    """Seconds until all have ended, and what the failed ones raised."""
    began = time.perf_counter()
    found = await asyncio.gather(*runs, return_exceptions=True)
    seconds = time.perf_counter() - began
    return seconds, [repr(error) for error in found if isinstance(error, BaseException)]


async def ours(path: Path, names: Sequence[str], turns: int) -> tuple[float, list[str]]:
    """Our agent on all these threads at once."""
    work = Work(turns, TEXTS)
    async with our_agent(work, path) as agent:

        async def run(name: str) -> None:
            result = await agent.prompt("go", thread=name)
            assert (result.status, result.turns) == ("completed", turns + 1), result

        return await together([run(name) for name in names])


async def create_agent(path: Path, names: Sequence[str], turns: int) -> tuple[float, list[str]]:
    """`create_agent` with LangGraph's own async saver on all these threads at once."""
    work = Work(turns, TEXTS)
    async with peers.stock_saver(path) as saver:
        graph = peers.create_agent(work, saver)
        return await together([peers.run(graph, name) for name in names])


async def one_process(name: str, threads: int, turns: int) -> tuple[float, list[str]]:
    """Turns per second of many threads in this process, and the errors."""
    contender = ours if name == "ours" else create_agent
    names = [f"thread {number}" for number in range(threads)]
    with TemporaryDirectory() as folder:
        seconds, errors = await contender(Path(folder) / "threads.db", names, turns)
    return threads * turns / seconds, errors


def shared_file(path: Path, processes: int, threads: int, turns: int) -> tuple[float, list[str]]:
    """Turns per second of several processes on one file, all together, and their errors.

    They begin at the same moment, when every one of them is ready.
    """
    module = [sys.executable, "-m", "benchmarks.loads", "--member", str(path)]
    members = [
        subprocess.Popen(
            [*module, str(number), str(threads), str(turns)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for member in members:
        assert member.stdout is not None and member.stdout.readline() == READY
    began = time.perf_counter()
    for member in members:
        assert member.stdin is not None
        member.stdin.write(GO)
        member.stdin.flush()
    errors: list[str] = []
    for member in members:
        told, _ = member.communicate()
        errors += json.loads(told) if member.returncode == 0 else [f"exit {member.returncode}"]
    return processes * threads * turns / (time.perf_counter() - began), errors


def member(path: Path, number: int, threads: int, turns: int) -> None:
    """One of the processes on a shared file."""
    names = [f"thread {number}-{of}" for of in range(threads)]
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()
    _, errors = asyncio.run(ours(path, names, turns))
    print(json.dumps(errors))


def told(errors: Sequence[str]) -> str:
    """The number of errors, and the first of them."""
    return f"{len(errors)} errors" + (f", such as {errors[0]}" if errors else "")


def on_one_file() -> str:
    """What the load of several processes came to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "threads.db"
        speed, errors = shared_file(path, PROCESSES, SHARED_THREADS, SHARED_TURNS)
    load = f"{PROCESSES} processes x {SHARED_THREADS} threads x {SHARED_TURNS} turns on one file"
    return f"{load}:\n    {speed:.0f} turns/s, {told(errors)}"


def in_one_process(repeats: int) -> str:
    """What the load of one process came to, and what others make of it."""
    speeds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    errors: dict[str, list[str]] = {name: [] for name in CONTENDERS}
    for _ in range(repeats):
        for name in CONTENDERS:
            speed, raised = in_fresh_process("benchmarks.loads", name, THREADS, TURNS)
            speeds[name].append(speed)
            errors[name] += raised
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    ratio = medians["ours"] / medians["create_agent"]
    lines = [f"one process, {THREADS:,} threads at once x {TURNS} turns, median of {repeats}:"]
    lines += [
        f"    {name:14}{medians[name]:6.0f} turns/s, {told(errors[name])}" for name in medians
    ]
    claim = Claim("turns per second: ours / create_agent", ratio, FASTER, at_least=True)
    return "\n".join([*lines, str(claim)])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loads", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--member", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        path, *numbers = options.member
        member(Path(path), *map(int, numbers))
    elif options.measure:
        name, threads, turns = options.measure
        print(json.dumps(asyncio.run(one_process(name, int(threads), int(turns)))))
    elif absent := peers.missing(["create_agent"]):
        parser.error(absent)
    else:
        texts = [on_one_file(), in_one_process(options.repeats)]
        print("\n".join(texts))
        if options.write:
            page.put("\n".join(texts), page.DOCS / "benchmarks.md", "loads")


if __name__ == "__main__":
    main()
