"""`python -m benchmarks.savers`: LangGraph's SQLite saver and ours under other people's agents.

Needs the extra `bench`. Every run is a fresh process; both savers are async, at durability `sync`
and `synchronous=NORMAL`, and keep every checkpoint.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import page, peers
from benchmarks.measuring import in_fresh_process, stored_bytes
from benchmarks.peers import PEERS, Saver, stock_saver
from benchmarks.work import Work
from loopwright import SqliteCheckpointer

EDGE = 20
"""Turns at either end whose mean is shown as `first` and `last`."""


@asynccontextmanager
async def our_saver(path: Path) -> AsyncIterator[Saver]:
    """Our saver, as anyone would use it."""
    async with SqliteCheckpointer(path) as saver:
        yield saver


SAVERS = {"stock": stock_saver, "loopwright": our_saver}


async def measure(peer: str, saver: str, turns: int) -> dict[str, float]:
    """One run of a peer, and how long a reopened file takes to load."""
    work = Work(turns)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with SAVERS[saver](path) as checkpointer:
            graph = PEERS[peer](work, checkpointer)
            began = time.perf_counter()
            await peers.run(graph)
            total = time.perf_counter() - began
        size = stored_bytes(path)
        async with SAVERS[saver](path) as checkpointer:
            graph = PEERS[peer](work, checkpointer)
            began = time.perf_counter()
            assert await peers.load(graph) == 2 * turns + 2
            load = time.perf_counter() - began
    gaps = [1000 * (later - earlier) for earlier, later in pairwise(work.model.asked)]
    first, last = statistics.mean(gaps[:EDGE]), statistics.mean(gaps[-EDGE:])
    figures = {"mean": 1000 * total / turns, "first": first, "last": last}
    return {**figures, "KB": size / 1024, "load": 1000 * load}


def compare(names: list[str], turns: int, repeats: int) -> str:
    """The medians of both savers under each peer; the savers take turns."""
    lines = [f"{turns:,} tool turns, median of {repeats} (ms per turn; ms to load)"]
    lines.append(f"{'':32}{'mean':>8}{'first':>8}{'last':>8}{'KB':>10}{'load':>8}")
    for peer in names:
        runs: dict[str, list[dict[str, float]]] = {saver: [] for saver in SAVERS}
        for _ in range(repeats):
            for saver, found in runs.items():
                found.append(in_fresh_process("benchmarks.savers", peer, saver, turns))
        for saver, found in runs.items():
            row = {key: statistics.median(run[key] for run in found) for key in found[0]}
            lines.append(
                f"{peer:20}{saver:12}{row['mean']:>8.2f}{row['first']:>8.2f}"
                f"{row['last']:>8.2f}{row['KB']:>10.0f}{row['load']:>8.1f}"
            )
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.savers", description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--write", action="store_true", help="into docs/drop-in.md")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if absent := peers.missing(options.only):
        parser.error(absent)
    if options.measure:
        peer, saver, turns = options.measure
        print(json.dumps(asyncio.run(measure(peer, saver, int(turns)))))
        return
    texts = []
    for turns in options.turns:
        texts.append(compare(options.only, turns, options.repeats))
        print(f"\n{texts[-1]}", flush=True)
    if options.write:
        page.put("\n\n".join(texts), page.DOCS / "drop-in.md", "savers")


if __name__ == "__main__":
    main()
