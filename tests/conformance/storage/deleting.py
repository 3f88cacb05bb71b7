"""A thread is deleted beside others: what is left of it, of them, and of the space it took.

Gives the facts of its case.
"""

import asyncio
from pathlib import Path

from tests.conformance.storage import finding
from tests.conformance.storage.facts import Facts
from tests.conformance.storage.working import PER_RUN, Plan, agent_of, turns

PLAN = Plan(chars_each=5000)
"""What each turn adds, so that a thread takes visible space."""


async def one_of(path: Path, count: int, name: str, turns_each: int = PER_RUN) -> Facts:
    """Make threads `t1`, `t2`, ..., delete one, and ask for its space."""
    names = [f"t{number}" for number in range(1, count + 1)]
    others = [other for other in names if other != name]
    async with agent_of(path, PLAN) as agent:
        for thread in names:
            assert not await turns(agent, thread, turns_each)
        agent.steer("Never delivered.", thread=name)
    before = finding.megabytes(path)
    async with agent_of(path, PLAN) as agent:
        await asyncio.to_thread(agent.delete, name)
    left, orphans = finding.rows_of(path, name), finding.orphans(path)
    async with agent_of(path, PLAN) as agent:
        await asyncio.to_thread(agent.reclaim)
    after, unused = finding.megabytes(path), finding.unused_pages(path)
    async with agent_of(path, PLAN) as agent:
        failed = [error for other in others for error in await turns(agent, other, 1)]
    loaded = [finding.turns_stored(path, [other]) == turns_each + 1 for other in others]
    return {
        "rows_left_for": {name: left + orphans},
        "other_thread_loads": all(loaded) and not failed,
        "other_threads_load": all(loaded) and not failed,
        "space_reclaimed_on_request": after < before and unused == 0,
        "errors": len(failed),
        "db_mb": after,
    }
