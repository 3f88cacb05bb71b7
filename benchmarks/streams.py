"""What a model step costs per chunk: a run of an agent against `ChatOpenAI.astream` by itself.

`python -m benchmarks.streams [ROUNDS]` serves one stream of 2,000 chunks, lets both read it in
fresh processes in turn, and prints medians and ratios. The machine's other work counts for both.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import repeat

from loopwright.testing import OpenAIServer, Response

CHUNKS = 2_000
WARM_UP = 2
"""Streams that a model object reads before the measured one: imports, connections, caches."""

MOST = 1.5
"""The ratio that a model step may come to."""

Reading = Callable[[str], Awaitable[tuple[float, float, int]]]
"""Given the server's address: seconds to the first text and to the end, and how many texts."""


async def bare(url: str) -> tuple[float, float, int]:
    """langchain-openai's own client and nothing else."""
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("key"), max_retries=0)
    for _ in range(WARM_UP + 1):
        begun, first, texts = time.perf_counter(), 0.0, 0
        async for chunk in model.astream("Go."):
            if chunk.content:
                first, texts = first or time.perf_counter(), texts + 1
    return first - begun, time.perf_counter() - begun, texts


async def agent(url: str) -> tuple[float, float, int]:
    """Whole runs of an agent in memory, each on a thread of its own, with a listener."""
    from loopwright import Agent
    from loopwright.events import AnyEvent, MessageUpdate
    from loopwright.settings import Environment

    first, texts = 0.0, 0

    def hear(event: AnyEvent) -> None:
        nonlocal first, texts
        if isinstance(event, MessageUpdate) and event.update == "text_delta":
            first, texts = first or time.perf_counter(), texts + 1

    environment = Environment.model_validate({"base_url": url, "api_key": "key"})
    async with Agent("custom/m", environment=environment) as made:
        made.subscribe(hear)
        for number in range(WARM_UP + 1):
            begun, first, texts = time.perf_counter(), 0.0, 0
            await made.prompt("Go.", thread=str(number))
        return first - begun, time.perf_counter() - begun, texts


READINGS: dict[str, Reading] = {"ChatOpenAI.astream": bare, "agent": agent}


def measured(name: str, url: str) -> dict[str, float]:
    """Milliseconds to the first text and microseconds per chunk, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.streams", "read", name, url]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def read(name: str, url: str) -> None:
    """Read streams and print the figures of the last one of them."""

    async def work() -> None:
        first, total, texts = await READINGS[name](url)
        if texts != CHUNKS:
            raise RuntimeError(f"{name} read {texts} texts of {CHUNKS}")
        print(json.dumps({"first_ms": first * 1e3, "chunk_us": (total - first) / CHUNKS * 1e6}))

    asyncio.run(work())


def main(rounds: int) -> int:
    """Print the medians; the exit status is 1 if a ratio is above `MOST`."""
    answer = Response(text=["word "] * CHUNKS)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in READINGS}
    with OpenAIServer(repeat(answer)) as server:
        for _ in range(rounds):
            for name in READINGS:
                found[name].append(measured(name, server.base_url))
    worst = 0.0
    print(f"{CHUNKS} chunks, {rounds} rounds, medians")
    for figure in ("first_ms", "chunk_us"):
        base, ours = (statistics.median(r[figure] for r in rows) for rows in found.values())
        worst = max(worst, ours / base)
        print(f"{figure}: ChatOpenAI.astream {base:.1f}, agent {ours:.1f}, ratio {ours / base:.2f}")
    return int(worst > MOST)


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(*sys.argv[2:4])
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
