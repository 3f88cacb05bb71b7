"""The processes of a round: one that works on the thread until it is killed, one that steers it.

Each is the body of a process and tells what it does through a pipe; who kills it is in `round`.
"""

import asyncio
import os
import signal
import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Literal

from loopwright import failpoints
from loopwright.errors import BusyThreadError, ContinuationError
from loopwright.failpoints import Place
from loopwright.ongoing import Ongoing
from loopwright.queueing import WhenBusy
from tests.chaos.inspection import inspect
from tests.chaos.told import Busy, Ended, Entered, Failed, Queued, Reached, Told
from tests.chaos.world import World

Entry = Literal["resume", "prompt", "continue"]


@dataclass(frozen=True)
class Life:
    """What a worker does before it ends by itself: some runs, of which one may be its death."""

    entry: Entry
    """How it begins the first run; the others are prompts."""

    runs: int = 2
    place: Place | None = None
    """Where it kills itself, None: nowhere."""

    passing: int = 1
    """At which passing of the place, counted from 1."""

    when_busy: WhenBusy = "error"
    """What becomes of its prompts while another process has the thread."""


def live(world: World, life: Life, name: str, pipe: Connection) -> None:
    """The body of a worker's process. It tells what it finds, then every event of its runs."""
    if life.place is not None:
        failpoints.arm(life.place, _death(life.place, life.passing, pipe))
    _reporting(pipe, lambda: _live(world, life, name, pipe))


def steer(world: World, pipe: Connection) -> None:
    """The body of the process that queues what it is given, until it is given nothing more."""
    _reporting(pipe, lambda: _steer(world, pipe))


def _reporting(pipe: Connection, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        asyncio.run(work())
    except BaseException:
        pipe.send(Failed(traceback.format_exc()))
        raise


def _death(place: Place, passing: int, pipe: Connection) -> Callable[[], None]:
    """Kill this process at the given passing; in whatever thread that is, nothing runs after it."""
    left = passing

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            pipe.send(Reached(place))
            os.kill(os.getpid(), signal.SIGKILL)

    return die


async def _live(world: World, life: Life, name: str, pipe: Connection) -> None:
    async with world.agent() as agent:
        pipe.send(inspect(agent, world.database))
        for number in range(life.runs):
            prompt = f"{name}, run {number + 1}"
            begin: dict[str, Callable[[], Ongoing]] = {
                "resume": agent.resume,
                "continue": agent.continue_,
                "prompt": partial(agent.prompt, prompt, when_busy=life.when_busy),
            }
            ways = [life.entry, "prompt"] if number == 0 else ["prompt"]
            if await _run({way: begin[way] for way in ways}, pipe) == "queued":
                pipe.send(Queued("follow_up", prompt))


async def _run(ways: Mapping[str, Callable[[], Ongoing]], pipe: Connection) -> str:
    """One run from its beginning to its end, in the first way that there is; its status.

    Where another process has the thread, it waits for a word before it tries again.
    """
    left = list(ways)
    while True:
        try:
            return await _followed(ways[left[0]](), left[0], pipe)
        except ContinuationError:
            left.pop(0)
        except BusyThreadError:
            pipe.send(Busy())
            await asyncio.to_thread(pipe.recv)


async def _followed(run: Ongoing, way: str, pipe: Connection) -> str:
    async for event in run:
        if event.sequence == 0:
            pipe.send(Entered(way))
        pipe.send(Told.of(event))
    result = await run
    if result.status != "queued":
        pipe.send(Ended(result.status, result.reason))
    return result.status


async def _steer(world: World, pipe: Connection) -> None:
    async with world.agent() as agent:
        while (given := pipe.recv()) is not None:
            assert isinstance(given, Queued)
            queue = agent.steer if given.queue == "steering" else agent.follow_up
            queue(given.text)
            pipe.send(given)
