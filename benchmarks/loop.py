"""`python -m benchmarks.loop`: what a tool turn costs in our loop, in others, and in plain ones.

Every run is a fresh process, the contenders take turns, and the medians are compared.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from benchmarks import claims, growth, page, plot
from benchmarks.claims import Claim
from benchmarks.contenders import CONTENDERS
from benchmarks.measuring import Figures, figures_of
from benchmarks.peers import missing

PAGE = page.DOCS / "benchmarks.md"
LONG = 5000
"""Turns of our long thread."""
FEW, MANY = 200, 1000
"""Runs that begin with a rewrite of the tail."""


def compare(names: Sequence[str], turns: int, repeats: int) -> dict[str, Figures]:
    """The medians of the contenders, which take turns."""
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    for number in range(repeats):
        for name in names:
            print(f"\r{turns} turns, {number + 1} of {repeats}: {name:20}", end="", file=sys.stderr)
            runs[name].append(figures_of(name, turns))
    print(file=sys.stderr)
    return {name: Figures.median(found) for name, found in runs.items()}


def table(medians: dict[str, Figures], turns: int, repeats: int) -> str:
    """The figures side by side, with the ratios of the mean times."""
    head = ("mean", "first", "last", "CPU", "/agent", "/floor", "database", "memory", "load")
    unit = ("ms", "ms", "ms", "ms", "", "_sqlite", "KB", "MB", "ms")
    lines = [f"{turns:,} tool turns, median of {repeats} (times per turn; load: the whole thread)"]
    lines += [f"{'':19}" + "".join(f"{word:>9}" for word in row) for row in (head, unit)]
    for name, row in medians.items():
        ratios = "".join(
            f"{row.mean / medians[other].mean:9.2f}" if other in medians else f"{'-':>9}"
            for other in ("create_agent", "floor_sqlite")
        )
        times = "".join(f"{value:9.2f}" for value in (row.mean, row.first, row.last, row.cpu))
        load = f"{row.load:9.1f}" if row.load else f"{'-':>9}"
        size = f"{row.bytes / 1024:9.0f}" if row.bytes else f"{'-':>9}"
        lines.append(f"{name:19}{times}{ratios}{size}{row.memory:9.0f}{load}")
    return "\n".join(lines)


def growing(short: float | None) -> Iterable[Claim]:
    """What is promised of our storage as threads grow; `short` are the bytes at 1,000 turns."""
    print("long threads", file=sys.stderr)
    short = figures_of("ours", 1000).bytes if short is None else short
    yield from claims.of_growth(short, growth.long_thread_of(LONG))
    few, many = growth.rewritten_tails_of(FEW), growth.rewritten_tails_of(MANY)
    yield claims.of_rewrites(few, many)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, read and checked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--no-growth", action="store_true", help="leave the long threads out")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if absent := missing(options.only):
        parser.error(absent)
    return options


def main() -> None:
    """The command line."""
    options = parsed()
    medians: dict[int, dict[str, Figures]] = {}
    texts: list[str] = []
    for turns in options.turns:
        medians[turns] = compare(options.only, turns, options.repeats)
        texts.append(table(medians[turns], turns, options.repeats))
        print(f"\n{texts[-1]}", flush=True)
    found = [*claims.of_time(medians), *claims.of_storage(medians)]
    if not options.no_growth:
        ours = medians.get(1000, {}).get("ours")
        found += growing(None if ours is None else ours.bytes)
    texts.append("\n".join(map(str, found)))
    print(f"\n{texts[-1]}")
    if options.write:
        most = max(options.turns)
        page.put("\n\n".join(texts), PAGE, "table")
        curves = {name: row.curve for name, row in medians[most].items()}
        PAGE.with_suffix(".svg").write_text(plot.svg(curves, most), encoding="utf-8")


if __name__ == "__main__":
    main()
