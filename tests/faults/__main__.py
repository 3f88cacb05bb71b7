"""`python -m tests.faults [--requests N] [--seed N]`: runs until so many requests were sent.

Prints how often each fault was met and how runs ended, and every seed whose run went wrong.
"""

import argparse
import asyncio
import sys
from collections import Counter

import httpx2

from tests.faults.trial import attempt


async def campaign(requests: int, seed: int) -> tuple[int, int, Counter[str], list[str]]:
    """Runs, requests, counts and what went wrong, of seeds from this one on."""
    runs = sent = 0
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    # One client for all runs: making one takes longer than a run.
    async with httpx2.AsyncClient(
        verify=False, limits=httpx2.Limits(max_keepalive_connections=0)
    ) as http:
        while sent < requests:
            trial = await attempt(seed + runs, http)
            wrong += [f"seed {seed + runs}: {reason}" for reason in trial.wrong]
            runs, sent = runs + 1, sent + trial.requests
            counts += trial.counts
    return runs, sent, counts, wrong


def main() -> int:
    """The exit status: 0 if nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    runs, sent, counts, wrong = asyncio.run(campaign(options.requests, options.seed))
    for name, count in counts.most_common():
        print(f"{count:7,}  {name}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{sent:,} requests in {runs:,} runs from seed {options.seed}, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
