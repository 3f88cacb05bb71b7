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


def is_raw(scenario: Json) -> bool:
    """Whether a scenario is played on the raw loops, which have no checkpointer."""
    return bool(scenario.get("api") == "loop")


def fault(case: Json, variant: Variant) -> str | None:
    """Play a case; the first thing that is wrong with its trace, None if it passes."""
    scenario: Json | None = case.get("scenario")
    if scenario is None:
        return "scenario: there is none"
    try:
        if strange := unknown(scenario):
            return f"scenario: {strange[0]}"
        trace, unwitnessed = played(scenario, variant)
    except Exception as error:  # one case must not keep the others from being played
        return f"played: {type(error).__name__}: {error}"
    return difference(case["golden"], trace, is_raw=is_raw(scenario)) or unwitnessed


def played(scenario: Json, variant: Variant) -> tuple[Json, str | None]:
    """The trace of a scenario, and the fault if not all of it came out of the compiled graph."""
    world = World(scenario)
    with witnessed() as witness, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        ends = runner.run(_played(world, variant))
    trace = {
        "steps": world.steps,
        "events": world.events,
        "requests": world.requests,
        "toolRuns": world.tool_runs,
        "hooks": world.hooks,
        "log": world.log,
        **ends,
    }
    if witness.model_visits == len(world.requests) + world.faults_before_request:
        return trace, None
    visits = f"{witness.model_visits} visits of the node `model`"
    return trace, f"graph: {len(world.requests)} requests, but {visits}"


async def _played(world: World, variant: Variant) -> Json:
    ends = await (_raw_loop if is_raw(world.scenario) else _agent)(world, variant)
    for task in world.tasks:
        task.cancel()
    await asyncio.gather(*world.tasks, return_exceptions=True)
    return ends


async def _raw_loop(world: World, variant: Variant) -> Json:
    host = RawHost(world)
    await host.play()
    return {"contextMessages": host.context_messages(), "final": host.final()}


async def _agent(world: World, variant: Variant) -> Json:
    with variant.storage() as storage:
        host = AgentHost(world, storage)
        if variant.is_interrupted:
            host.agent.graph = Interrupted.around(host.agent.graph, world)
        async with host.agent:
            await host.play()
            return {"transcript": host.transcript(), "final": host.final()}
