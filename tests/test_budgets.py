"""Runs that pay for their model calls from one wallet: alone, as a tree, and after a restart."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Limits, Settings
from loopwright.budgets import KIND, Purse, delegated
from loopwright.errors import MissingKeyError
from loopwright.events import Budget, Compaction
from loopwright.ongoing import OngoingRun
from loopwright.runs import Run
from loopwright.state.log import MemoryLog
from loopwright.state.schema import Tree
from loopwright.testing import Response, ScriptedModel
from loopwright.wallet import Wallet
from tests.support.graphs import Rig, on, outcome, rig
from tests.support.processes import output, start
from tests.support.providers import said

HI: Any = {"messages": "hi"}


def look(n: int) -> int:
    """Look."""
    return n


def looking(
    times: int, log: MemoryLog, /, *, settings: Settings | None = None, **limits: Any
) -> Rig:
    """A graph whose model calls a tool so often and then answers."""
    calls = [said("", (f"c{n}", "look", {"n": n})) for n in range(times)]
    settings = settings or Settings(limits=Limits(**limits))
    return rig(*calls, "done", tools=[look], log=log, settings=settings)


def wallets(log: MemoryLog, thread: str) -> list[str]:
    """The wallets that were begun on a thread."""
    return [e.body["wallet"] for e in log.read(thread, [KIND]) if e.body["op"] == "open"]


async def wallet(log: MemoryLog, thread: str = "t") -> Wallet:
    """The last wallet of a thread."""
    tree = Tree(thread=thread, run=wallets(log, thread)[-1])
    found = (await Purse(log, tree, thread).verdict()).wallet
    assert found is not None
    return found


async def joined(made: Rig, tree: Tree, thread: str) -> Any:
    """The result of a run that another one has started."""
    lease = made.graph.leases.claim(thread)
    run = Run.start(lease=lease, dependencies=made.graph.dependencies)
    run.tree = tree
    return await OngoingRun(made.graph, run, HI, lease.release)


async def parent(log: MemoryLog, total: int = 20, reserve: int = 2, draws: int = 1) -> Purse:
    """The root of a wallet that has drawn so often."""
    purse = Purse(log, Tree(thread="parent", run="r"), "parent")
    await purse.open(total, reserve)
    for _ in range(draws):
        assert await purse.draw()
    return purse


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("turns", "calls", "reason"), [(3, 9, "max_turns"), (9, 3, "max_calls"), (3, 3, "max_turns")]
)
async def test_a_run_takes_no_more_than_its_turns_and_its_wallet(
    turns: int, calls: int, reason: str
) -> None:
    log = MemoryLog()
    made = looking(9, log, turns=turns, calls=calls)
    events = await made.events(HI)
    result = outcome(events)
    assert (result.status, result.reason, result.turns) == ("limit", reason, 3)
    assert len(made.provider.requests) == 3
    assert (await wallet(log)).remaining == calls - 3
    told = [event.left for event in events if isinstance(event, Budget)]
    assert told == [calls - 1, calls - 2, calls - 3]


@pytest.mark.anyio
async def test_without_a_limit_of_calls_nothing_is_noted() -> None:
    log = MemoryLog()
    assert (await looking(2, log).run(HI)).status == "completed"
    assert log.read("t", [KIND]) == []


@pytest.mark.anyio
async def test_calls_may_be_set_for_one_run_and_the_next_run_has_its_own_wallet() -> None:
    log = MemoryLog()
    made = looking(9, log)
    assert (await made.run(HI, context={"max_calls": 2})).reason == "max_calls"
    assert (await made.run(HI, context={"max_calls": 3})).turns == 3
    assert len(wallets(log, "t")) == 2


@pytest.mark.anyio
async def test_a_child_draws_from_the_wallet_of_the_run_that_started_it() -> None:
    log = MemoryLog()
    purse = await parent(log, draws=11, total=90)
    child = looking(14, log)
    result = await joined(child, purse.tree, "child")
    assert (result.status, len(child.provider.requests)) == ("completed", 15)
    found = (await purse.verdict()).wallet
    assert found is not None
    assert (found.remaining, dict(found.used)) == (64, {"parent": 11, "child": 15})


@pytest.mark.anyio
async def test_a_child_leaves_the_reserve_to_its_parent() -> None:
    log = MemoryLog()
    purse = await parent(log, total=6, reserve=2)
    result = await joined(looking(9, log), purse.tree, "child")
    assert (result.reason, result.turns) == ("max_calls", 3)
    assert [await purse.draw() for _ in range(3)] == [True, True, False]


@pytest.mark.anyio
async def test_a_child_that_gets_no_call_at_all_ends_before_its_first_request() -> None:
    log = MemoryLog()
    purse = await parent(log, total=3, reserve=2)
    child = looking(9, log)
    result = await joined(child, purse.tree, "child")
    assert (result.status, result.reason, child.provider.requests) == ("limit", "max_calls", [])


@pytest.mark.anyio
async def test_children_side_by_side_share_fairly() -> None:
    log = MemoryLog()
    purse = await parent(log, total=21, reserve=2, draws=1)
    await purse.children(["a", "b", "c"], cap=50)
    made = {who: looking(30, log) for who in "abc"}
    results = await asyncio.gather(*(joined(made[who], purse.tree, who) for who in "abc"))
    assert {result.turns for result in results} == {6}
    assert {result.reason for result in results} == {"max_calls"}


@pytest.mark.anyio
async def test_a_cap_bounds_a_child_and_an_isolated_one_has_a_wallet_of_its_own() -> None:
    log = MemoryLog()
    made = looking(1, log, calls=40, child_calls=5)
    await made.run(HI)
    state: Any = (await made.graph.aget_state(on("t"))).values
    run = Run.start(lease=made.graph.leases.claim("t"), dependencies=made.graph.dependencies)
    run.settings = made.graph.dependencies.settings
    tree = await delegated(state, run, ["child"])
    assert tree is not None
    assert (await joined(looking(30, log), tree, "child")).turns == 5
    run.settings = Settings(child_wallet="isolated", limits=run.settings.limits)
    assert await delegated(state, run, ["other"]) is None
    alone = await looking(30, log, calls=4).run(HI, "other")
    assert (alone.turns, (await wallet(log)).remaining) == (4, 33)


@pytest.mark.anyio
async def test_no_more_get_a_unit_than_there_are_however_many_draw_at_once() -> None:
    purse = await parent(MemoryLog(), total=10, reserve=0, draws=0)
    children = [await purse.child(f"c{n}") for n in range(8)]
    granted = await asyncio.gather(*(child.draw() for child in children * 4))
    assert sum(granted) == 10


@pytest.mark.anyio
async def test_a_call_that_was_never_sent_is_given_back() -> None:
    log = MemoryLog()
    made = looking(0, log, calls=5)
    made.provider.script = [MissingKeyError("m", "KEY")]
    assert (await made.run(HI)).status == "failed"
    assert (await wallet(log)).remaining == 5
    made.provider.script = [RuntimeError("the server went away")]
    await made.run(HI)
    assert (await wallet(log)).remaining == 4


@pytest.mark.anyio
async def test_a_run_that_is_aborted_pays_for_no_request() -> None:
    log = MemoryLog()
    made = looking(3, log, calls=5)
    lease = made.graph.leases.claim("t")
    run = Run.start(lease=lease, dependencies=made.graph.dependencies)
    run.signal.abort()
    await OngoingRun(made.graph, run, HI, lease.release)
    assert log.read("t", [KIND]) == []


@pytest.mark.anyio
async def test_the_call_for_a_summary_is_paid_for_too() -> None:
    log = MemoryLog()
    settings = Settings(context_window=40, compaction_tail=1, limits=Limits(calls=9))
    long = said("x" * 400, ("c0", "look", {"n": 0}))
    made = rig(long, "a summary", "done", tools=[look], log=log, settings=settings)
    events = await made.events(HI)
    assert any(isinstance(event, Compaction) for event in events)
    assert len(made.provider.requests) == 3
    assert (await wallet(log)).remaining == 6


DIES = """
import os, signal, sys
from pathlib import Path
from loopwright import Agent, Limits, Settings
from loopwright.testing import Response, ScriptedModel

mark = Path(sys.argv[2])

def work(n: int) -> str:
    "Work."
    if n == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done {n}"

first = int(sys.argv[3])
model = ScriptedModel(
    [Response(calls=[(f"c{n}", "work", {"n": n})]) for n in range(first, 20)]
)
settings = Settings(limits=Limits(calls=5))
with Agent(model, [work], database=sys.argv[1], thread="t", settings=settings) as agent:
    if first == 0:
        agent.run("Work.")
    else:
        async def resumed():
            return await agent.resume()
        from loopwright import background
        result = background.run(resumed)
        print(result.reason, result.turns, len(model.requests))
"""


def test_a_run_that_was_killed_goes_on_with_what_is_left(tmp_path: Path) -> None:
    arguments = (tmp_path / "threads.db", tmp_path / "mark")
    with start(DIES, *arguments, 0) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert output(DIES, *arguments, 2) == "max_calls 5 3"


@pytest.mark.anyio
async def test_an_agent_says_in_its_result_that_its_wallet_is_empty() -> None:
    model = ScriptedModel([Response(calls=[(f"c{n}", "look", {"n": n})]) for n in range(4)])
    async with Agent(model, [look], settings=Settings(limits=Limits(calls=2))) as agent:
        result = await agent.prompt("hi")
    assert (result.status, result.reason) == ("limit", "max_calls")
