"""`python -m tests.chaos.degradation`: seeded runs whose tools hang, raise and time out at random.

Each must end with a status and a reason, on a valid thread. Kills are the business of `round`.
"""

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from loopwright import Agent, Limits, Settings
from loopwright.outcome import RunResult
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.support.tasks import no_task_left
from tests.support.virtual_time import VirtualTimeLoop

TIMEOUT = 30.0
"""Seconds that a call may take; virtual ones."""

STATUSES = {"completed", "limit", "cancelled", "failed"}


class Tools:
    """Tools that do what a seed says: answer, hang, take long, raise, or try to end the process."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    async def look(self, at: int) -> str:
        """Look at something."""
        await self._fate()
        return f"{at} seen"

    async def send(self, what: int) -> str:
        """Send something."""
        await self._fate()
        return f"{what} sent"

    async def _fate(self) -> None:
        fate = self._source.choice(["done", "late", "hangs", "raises", "exits", "cancels itself"])
        if fate == "late":
            await asyncio.sleep(self._source.uniform(0, 2 * TIMEOUT))
        elif fate == "hangs":
            await asyncio.Event().wait()
        elif fate == "raises":
            raise ValueError("no luck")
        elif fate == "exits":
            raise SystemExit(3)
        elif fate == "cancels itself":
            raise asyncio.CancelledError


def answers(source: random.Random) -> list[Response | Exception]:
    """A script of a few turns with calls, then an answer; some requests fail."""
    script: list[Response | Exception] = []
    for turn in range(source.randrange(6)):
        if source.random() < 0.05:
            script.append(ConnectionError("the line is dead"))
        calls = [
            (f"c{turn}-{number}", source.choice(["look", "send", "none"]), {"at": turn, "what": 0})
            for number in range(source.randint(1, 4))
        ]
        usage = {"input_tokens": source.randrange(200), "output_tokens": 5}
        script.append(Response(text="I work.", calls=calls, usage=usage))
    return [*script, Response(text="done"), Response(text="done")]


async def one(seed: int, database: Path) -> RunResult:
    """The run of one seed; raises AssertionError if it does not end as it must."""
    source = random.Random(seed)
    settings = Settings(
        tool_execution=source.choice(["parallel", "sequential"]),
        tool_timeout=TIMEOUT,
        limits=Limits(
            turns=source.randint(1, 6),
            tokens=source.choice([None, 300]),
            last_answer=source.random() < 0.3,
        ),
    )
    tools = Tools(source)
    thread = f"seed {seed}"
    async with Agent(
        ScriptedModel(answers(source)),
        [tools.look, tools.send],
        database=database,
        thread=thread,
        settings=settings,
    ) as agent:
        result = await agent.prompt("go")
        assert result.status in STATUSES and result.reason, (seed, result)
        assert not faults(agent.messages()), seed
    return result


def play(seeds: range, tell: Callable[[str], None] = print) -> Counter[str]:
    """Play the seeds; gives how many runs ended with which status and reason."""
    counts: Counter[str] = Counter()

    async def all_of_them(database: Path) -> None:
        for seed in seeds:
            async with no_task_left():
                result = await one(seed, database)
            counts[f"{result.status}: {result.reason}"] += 1

    with tempfile.TemporaryDirectory() as folder:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(all_of_them(Path(folder) / "threads.db"))
    for ending, count in sorted(counts.items()):
        tell(f"{count:6} {ending}")
    return counts


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts = play(range(arguments.seed, arguments.seed + arguments.runs))
    print(f"{counts.total()} runs, each ended with a status and a reason")


if __name__ == "__main__":
    main()
