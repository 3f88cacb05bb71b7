"""Plays one scenario in one variant and says what is wrong with its trace.

How the scenarios of a folder are run and told is `__main__`'s.
"""

import asyncio

from tests.conformance.pi.agents import AgentHost
from tests.conformance.pi.comparing import difference
from tests.conformance.pi.keys import unknown
from tests.conformance.pi.raw_loops import RawHost
from tests.conformance.pi.shorthand import Json
from tests.conformance.pi.variants import Interrupted, Variant, witnessed
from tests.conformance.pi.world import World
from tests.support.virtual_time import VirtualTimeLoop


def is_raw(case: Json) -> bool:
    """Whether a case is played on the raw loops, which have no checkpointer."""
    return bool(case["scenario"].get("api") == "loop")


def fault(case: Json, variant: Variant) -> str | None:
    """Play a case; the first thing that is wrong with its trace, None if it passes."""
    try:
        if strange := unknown(case["scenario"]):
            return f"scenario: {strange[0]}"
        world = World(case["scenario"])
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            trace, visits = runner.run(_trace(world, variant, raw=is_raw(case)))
    except Exception as error:  # one case must not keep the others from being played
        return f"played: {type(error).__name__}: {error}"
    found = difference(case["golden"], trace, is_raw=is_raw(case))
    return found or _unwitnessed(world, visits)


async def _trace(world: World, variant: Variant, *, raw: bool) -> tuple[Json, int]:
    with witnessed() as witness:
        ends = await (_played_raw(world) if raw else _played(world, variant))
        for task in world.tasks:
            task.cancel()
        await asyncio.gather(*world.tasks, return_exceptions=True)
    trace = {
        "steps": world.steps,
        "events": world.events,
        "requests": world.requests,
        "toolRuns": world.tool_runs,
        "hooks": world.hooks,
        "log": world.log,
        **ends,
    }
    return trace, witness.model_visits


async def _played_raw(world: World) -> Json:
    host = RawHost(world)
    await host.play()
    return {"contextMessages": host.context_messages(), "final": host.final()}


async def _played(world: World, variant: Variant) -> Json:
    with variant.storage() as storage:
        host = AgentHost(world, storage)
        if variant.is_interrupted:
            host.agent.graph = Interrupted.around(host.agent.graph, world)
        async with host.agent:
            await host.play()
            return {"transcript": host.transcript(), "final": host.final()}


def _unwitnessed(world: World, visits: int) -> str | None:
    """The fault of a trace whose requests were not all sent by the compiled graph's own node."""
    if visits == len(world.requests) + world.faults_before_request:
        return None
    return f"graph: {len(world.requests)} requests, but {visits} visits of the node `model`"
