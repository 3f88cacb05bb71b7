"""`python -m tests.chaos`: many rounds, counts by place, and a failure that can be played again.

What a round is lives in `round` and `duel`; a few of them are played by `test_kills`.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.duel import Duel
from tests.chaos.plan import ENTRIES, PLACES, kills
from tests.chaos.round import Round, Tally, Violated
from tests.chaos.world import World

INSTANTS = 8
"""Kills at any instant in each round, beside the one at each place: 160 in 20 rounds."""


def main(words: Sequence[str] | None = None) -> int:
    """Play rounds until all are done or something does not hold; the exit code says which."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="one kill at each place in each")
    parser.add_argument("--duels", type=int, default=5, help="rounds of two workers at a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next have +1")
    given = parser.parse_args(words)
    for kind, count in ((Round, given.rounds), (Duel, given.duels)):
        begun, tally = time.monotonic(), Tally()
        for seed in range(given.seed, given.seed + count):
            try:
                tally.add(_played(kind, seed))
            except Violated as violated:
                print(f"{kind.__name__} {seed}: {violated}", file=sys.stderr)
                print(f"again: --seed {seed} {_alone(kind)}", file=sys.stderr)
                return 1
        if count:
            _show(kind, tally, time.monotonic() - begun)
    return 0


def _played(kind: type[Round], seed: int) -> Tally:
    with TemporaryDirectory() as folder:
        return kind(World(Path(folder), seed)).play(kind.suited(kills(seed, INSTANTS)))


def _alone(kind: type[Round]) -> str:
    return "--rounds 0 --duels 1" if kind is Duel else "--rounds 1 --duels 0"


def _show(kind: type[Round], tally: Tally, seconds: float) -> None:
    print(f"{kind.__doc__}".split("\n")[0])
    ways = "".join(f"{entry:>10}" for entry in ENTRIES)
    print(f"  {'killed at':<14}{'times':>7}   and then begun by:{ways}")
    for place in (*PLACES, "any instant"):
        counts = "".join(f"{tally.after[place, entry] or '':>10}" for entry in ENTRIES)
        print(f"  {place:<14}{tally.kills[place]:>7}{'':>21}{counts}")
    print(f"  {'together':<14}{tally.kills.total():>7}   in {seconds:.0f} s; nothing was violated")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(tally.facts.items())))


if __name__ == "__main__":
    sys.exit(main())
