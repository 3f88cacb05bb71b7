"""A batch of tools in a process that is killed with -9 inside it, and what is made of it then.

As a script it is that process. Each tool writes the effect of each run of it into a file that is
synced before it goes on.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from loopwright import Agent, Settings
from loopwright.events import AnyEvent, ToolExecutionEnd
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.conformance.storage.facts import Facts

ROOT = Path(__file__).parents[3]
THREAD = "batch"
DATABASE, EFFECTS = "threads.db", "effects"


@dataclass(frozen=True)
class Batch:
    """One call for each name, and when its process is killed.

    Either inside the body of `crash_in`, when the calls before it have ended, or as soon as
    `finished` calls have ended while the others are still in their bodies.
    """

    names: Sequence[str]
    crash_in: str = ""
    finished: int = 0
    mode: str = "parallel"

    async def ran(self, folder: Path) -> None:
        """Run it in a process of its own until it is killed there."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", __name__, str(folder), json.dumps(asdict(self))),
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != -signal.SIGKILL:
            raise RuntimeError(f"the batch was not killed: {said.decode().strip()[-300:]}")


@dataclass
class Shop:
    """The tools of a batch and the folder that they work in; nobody is killed without a `batch`."""

    folder: Path
    batch: Batch | None = None
    ended: list[str] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def agent(self, names: Sequence[str], *script: Any, mode: str = "parallel") -> Agent:
        """An agent on the thread, with one tool for each name."""
        agent = Agent(
            ScriptedModel(script),
            [self._tool(name) for name in names],
            database=self.folder / DATABASE,
            thread=THREAD,
            settings=Settings.from_json({"tool_execution": mode}),
        )
        agent.subscribe(self._listen)
        return agent

    def runs(self) -> Counter[str]:
        """How often each tool has run."""
        file = self.folder / EFFECTS
        return Counter(file.read_text().split() if file.exists() else [])

    def _tool(self, name: str) -> Callable[..., Any]:
        async def body() -> str:
            """Work."""
            self._note(name)
            if self.batch is not None:
                await self._inside(self.batch, name)
            return f"{name} is done"

        body.__name__ = name
        return body

    def _note(self, name: str) -> None:
        with open(self.folder / EFFECTS, "a") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())

    async def _inside(self, batch: Batch, name: str) -> None:
        at = batch.names.index(name)
        if name == batch.crash_in:
            await self._until(at)
            os.kill(os.getpid(), signal.SIGKILL)
        elif batch.finished and at >= batch.finished:
            await self._until(sys.maxsize)

    async def _until(self, count: int) -> None:
        while len(self.ended) < count:
            self.moved.clear()
            await self.moved.wait()

    def _listen(self, event: AnyEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            self.ended.append(event.tool_name)
            self.moved.set()
            if self.batch is not None and len(self.ended) == self.batch.finished:
                os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Aftermath:
    """What became of the batch: its results by tool, and how often each tool has run in all."""

    results: Mapping[str, list[str]]
    runs: Counter[str]
    valid: bool

    def answered_once(self) -> bool:
        """Whether each call has exactly one result in a valid transcript."""
        return self.valid and all(len(found) == 1 for found in self.results.values())


async def after(folder: Path, batch: Batch, *, resumed: bool) -> Aftermath:
    """Carry the run on, or prompt the thread anew, in a copy of what the kill has left."""
    copy = Path(shutil.copytree(folder, folder.with_name(f"{folder.name} {resumed}")))
    shop = Shop(copy)
    async with shop.agent(batch.names, "Done.", mode=batch.mode) as agent:
        await (agent.resume() if resumed else agent.prompt("Go on."))
        messages: list[AnyMessage] = agent.messages()
    results: dict[str, list[str]] = {name: [] for name in batch.names}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(str(message.name), []).append(str(message.text))
    return Aftermath(results, shop.runs(), not faults(messages))


async def crashed_inside(folder: Path, given: Mapping[str, Any]) -> Facts:
    """A crash inside one of the named tools, and what a resume makes of it in either mode."""
    found: list[Aftermath] = []
    for mode in ("parallel", "sequential"):
        place = folder / mode
        place.mkdir()
        batch = Batch(given["batch"], crash_in=given["crash_in"], mode=mode)
        await batch.ran(place)
        found.append(await after(place, batch, resumed=True))
    return {
        "runs": {name: max(one.runs[name] for one in found) for name in given["batch"]},
        **{f"{name}_answered": all(one.results[name] for one in found) for name in given["batch"]},
        "each_call_answered_once": all(one.answered_once() for one in found),
    }


async def killed_after(folder: Path, given: Mapping[str, Any]) -> Facts:
    """A kill right after so many of so many tools have finished; both a resume and a new prompt
    must use what has finished.
    """
    names = [f"tool{number}" for number in range(1, given["batch"] + 1)]
    batch = Batch(names, finished=given["kill_after_finished"])
    place = folder / "killed"
    place.mkdir()
    await batch.ran(place)
    found = [await after(place, batch, resumed=resumed) for resumed in (True, False)]
    finished = names[: batch.finished]
    used = all(one.results[name] == [f"{name} is done"] for one in found for name in finished)
    once = all(one.runs[name] == 1 for one in found for name in finished)
    return {
        "finished_tool_not_run_again": used and once,
        "each_call_answered_once": all(one.answered_once() for one in found),
        "runs": {name: max(one.runs[name] for one in found) for name in names},
    }


async def _be_killed(folder: Path, batch: Batch) -> None:
    calls: list[Any] = [(f"c{at}", name, {}) for at, name in enumerate(batch.names, 1)]
    shop = Shop(folder, batch)
    async with shop.agent(batch.names, Response(calls=calls), "Done.", mode=batch.mode) as agent:
        await agent.prompt("Work.")


if __name__ == "__main__":
    asyncio.run(_be_killed(Path(sys.argv[1]), Batch(**json.loads(sys.argv[2]))))
