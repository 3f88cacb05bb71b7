"""One scenario with everything in it, seen in three ways: the graph's stream, `stream`, `run`.

That results are the same in every way is `test_agent`'s.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from loopwright import Agent, ToolContext
from loopwright.emitter import Listener
from loopwright.events import AnyEvent
from loopwright.testing import Response, ScriptedModel
from tests.support.graphs import on, outline, told
from tests.support.tasks import no_task_left
from tests.test_agent import plain

pytestmark = pytest.mark.anyio

BATCH: list[tuple[str, str, Any]] = [
    ("c1", "slow", {}),
    ("c2", "fast", {}),
    ("c3", "broken", {}),
    ("c4", "missing", {}),
]
SCRIPT: list[Any] = [
    Response(thinking="hm", text="I work.", calls=BATCH),
    "Short.",
    "Bref.",
    Response(calls=[("c5", "endless", {})]),
    "never said",
]


def scene() -> Agent:
    """An agent with two runs to come. First: parallel tools that end in another order and fail,
    steering and a follow-up meanwhile. Second: an abort while a tool runs.
    """
    done = asyncio.Event()

    async def slow(context: ToolContext) -> str:
        """End last, and tell how it goes."""
        context.update("half way")
        await done.wait()
        return "slow"

    async def fast() -> str:
        """End first, while the user has something to say."""
        agent.follow_up("in French")
        agent.steer("and be brief")
        done.set()
        return "fast"

    async def broken() -> str:
        """Fail."""
        raise ValueError("it broke")

    async def endless(context: ToolContext) -> str:
        """Go on until the user has had enough."""
        agent.abort(reason="enough")
        await context.signal.wait()
        return f"stopped: {context.signal.reason}"

    agent = Agent(ScriptedModel(SCRIPT), [slow, fast, broken, endless], thread="t")
    return agent


PROMPTS = ["go", "go on"]
Way = Callable[[Agent, str], Awaitable[list[AnyEvent]]]
"""Runs one prompt and gives its events."""


async def by_the_graph(agent: Agent, prompt: str) -> list[AnyEvent]:
    stream = agent.graph.astream({"messages": prompt}, on("t"), stream_mode="custom")
    return [event async for event in stream]


async def by_stream(agent: Agent, prompt: str) -> list[AnyEvent]:
    return [event async for event in agent.stream(prompt)]


async def by_run(agent: Agent, prompt: str) -> list[AnyEvent]:
    heard: list[AnyEvent] = []
    remove = agent.subscribe(heard.append)
    await asyncio.to_thread(agent.run, prompt)
    remove()
    return heard


async def seen(way: Way, listener: Listener | None = None) -> list[list[AnyEvent]]:
    """The events of the two runs."""
    async with scene() as agent:
        if listener is not None:
            agent.subscribe(listener)
        runs = [await way(agent, prompt) for prompt in PROMPTS]
        assert outline(agent.messages()) == LEDGER
    return runs


LEDGER = [
    "user: go",
    "assistant: I work. [c1 c2 c3 c4]",
    "c1: slow",
    "c2: fast",
    "c3: it broke",
    "c4: Tool missing not found. Available tools: broken, endless, fast, slow",
    "user: and be brief",
    "assistant: Short.",
    "user: in French",
    "assistant: Bref.",
    "user: go on",
    "assistant:  [c5]",
    "c5: stopped: enough",
    "assistant: ",
]
TOOLS = [
    *(f"tool_execution_start c{n}" for n in (1, 2, 3, 4)),
    "tool_execution_end c4",
    "tool_execution_update c1",
    *(f"tool_execution_end c{n}" for n in (2, 3, 1)),
]


async def test_the_graph_s_stream_tells_the_whole_scenario() -> None:
    first, second = await seen(by_the_graph)
    assert [line for line in told(first) if line.startswith("tool")] == TOOLS
    assert told(first).count("queue_update") == 2
    assert told(first).count("turn_end") == told(first).count("turn_start") == 3
    ends: Any = [first[-1], second[-1]]
    assert [(end.status, end.reason) for end in ends] == [
        ("completed", "answered"),
        ("cancelled", "aborted"),
    ]
    for events in (first, second):
        assert [event.sequence for event in events] == list(range(len(events)))
        assert {event.run_id for event in events} == {events[0].run_id}


@pytest.mark.parametrize("way", [by_stream, by_run])
async def test_the_other_views_tell_the_same(way: Way) -> None:
    expected = await seen(by_the_graph)
    assert [plain(run) for run in await seen(way)] == [plain(run) for run in expected]


@pytest.mark.parametrize("way", [by_the_graph, by_stream, by_run])
async def test_a_listener_that_sleeps_changes_neither_events_nor_order(way: Way) -> None:
    """It sleeps at every event until someone wakes it; the run waits, and that is all."""
    heard: list[AnyEvent] = []

    async def sleepy(event: AnyEvent) -> None:
        woken = asyncio.Event()
        asyncio.get_running_loop().call_later(0, lambda: asyncio.ensure_future(wake(woken)))
        await woken.wait()
        heard.append(event)

    async def wake(sleeper: asyncio.Event) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        sleeper.set()

    expected = await seen(way)
    runs = await seen(way, sleepy)
    assert [plain(run) for run in runs] == [plain(run) for run in expected]
    assert len(heard) == sum(map(len, runs))


async def test_several_consumers_see_the_same_and_none_disturbs_the_run() -> None:
    (expected, _) = await seen(by_stream)
    async with no_task_left(), scene() as agent:
        run = agent.prompt("go")
        hurried = asyncio.ensure_future(taken(aiter(run), 3))
        whole = [asyncio.ensure_future(taken(aiter(run))) for _ in range(2)]
        stuck = aiter(run)
        first = await anext(stuck)
        result = await run
        assert result.status == "completed"
        assert [first, *await taken(stuck)] == await whole[0] == await whole[1]
        assert await hurried == (await whole[0])[:3]
        assert await taken(aiter(run)) == await whole[0]
        assert plain(await whole[0]) == plain(expected)


async def taken(events: AsyncIterator[AnyEvent], count: int | None = None) -> Sequence[AnyEvent]:
    """So many events of a stream, or all; then the consumer is gone."""
    found: list[AnyEvent] = []
    async for event in events:
        found.append(event)
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("after", [1, 5, 25])
async def test_a_consumer_that_leaves_the_agent_s_stream_leaves_the_run_alone(after: int) -> None:
    async with no_task_left(), scene() as agent:
        assert len(await taken(agent.stream("go"), after)) == after
        await agent.wait_for_idle()
        assert outline(agent.messages()) == LEDGER[:10]


@pytest.mark.parametrize("after", [1, 5, 25])
async def test_closing_the_graph_s_stream_cuts_the_run_off_and_the_next_one_mends_it(
    after: int,
) -> None:
    async with scene() as agent:
        stream: Any = agent.graph.astream({"messages": "go"}, on("t"), stream_mode="custom")
        assert len(await taken(stream, after)) == after
        await stream.aclose()
        await agent.wait_for_idle()
        agent.model = ScriptedModel(["fine", "too"])
        result = await agent.prompt("still there?")
        assert (result.status, result.messages[0].text) == ("completed", "still there?")
