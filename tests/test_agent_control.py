"""What may happen to a run from outside: aborts, queued messages, listeners, closing."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from loopwright import Agent, ToolContext
from loopwright.errors import DatabaseError, NestedCallError
from loopwright.events import AnyEvent
from loopwright.settings import Settings
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.graphs import outline, told
from tests.support.tasks import no_task_left


def calling(*names: str) -> Response:
    return Response(text="I work.", calls=[(f"c{n}", name, {}) for n, name in enumerate(names, 1)])


def gated(gate: Gate) -> Callable[..., Any]:
    async def wait(context: ToolContext) -> str:
        """Wait at the gate."""
        await gate.wait()
        return "waited"

    return wait


def quick() -> str:
    """Take no time."""
    return "quick"


# ---- aborting


@pytest.mark.anyio
async def test_an_abort_on_an_idle_thread_does_nothing() -> None:
    async with Agent(ScriptedModel(["done"])) as agent:
        agent.abort()
        agent.abort(thread="nowhere")
        assert (await agent.prompt("hi")).status == "completed"


@pytest.mark.anyio
async def test_an_abort_while_an_answer_comes_in_cancels_the_run() -> None:
    gate = Gate()
    answer = Response(text=["It ", "is ", "done"], wait_for=gate, wait_after=2)
    async with no_task_left(), Agent(ScriptedModel([answer, "fine"])) as agent:
        run = agent.prompt("hi")
        await gate.reached()
        signal = agent.signal
        agent.abort(reason="enough")
        result = await run
        assert (result.status, result.reason, result.error) == ("cancelled", "aborted", None)
        assert signal is not None and signal.reason == "enough"
        assert (await agent.prompt("again")).final_text == "fine"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "results"),
    [
        (Settings(), ["c1: waited", "c2: quick"]),
        (Settings(tool_execution="sequential"), ["c1: waited", "c2: Operation aborted"]),
    ],
    ids=["parallel", "sequential"],
)
async def test_an_abort_while_tools_run_keeps_what_has_finished(
    settings: Settings, results: list[str]
) -> None:
    gate = Gate()
    model = ScriptedModel([calling("wait", "quick"), "never said", "fine"])
    async with (
        no_task_left(),
        Agent(model, [gated(gate), quick], settings=settings) as agent,
    ):
        run = agent.prompt("hi")
        await gate.reached()
        agent.abort()
        gate.open()
        assert (await run).status == "cancelled"
        assert outline(agent.messages())[2:4] == results
        assert (await agent.prompt("again")).status == "completed"


@pytest.mark.anyio
async def test_a_tool_sees_the_abort_and_what_it_then_returns_is_kept() -> None:
    begun = Gate()

    async def wait(context: ToolContext) -> str:
        """Wait until the run is cancelled."""
        begun.open()
        await context.signal.wait()
        return f"stopped: {context.signal.reason}"

    async with Agent(ScriptedModel([calling("wait"), "never said"]), [wait]) as agent:
        run = agent.prompt("hi")
        await begun.wait()
        await asyncio.to_thread(agent.abort, reason="from a thread")
        assert (await run).status == "cancelled"
        assert outline(agent.messages())[2] == "c1: stopped: from a thread"


@pytest.mark.anyio
async def test_cancelling_who_waits_cancels_the_run_and_the_next_one_mends_it() -> None:
    gate = Gate()
    async with (
        no_task_left(),
        Agent(ScriptedModel([calling("wait"), "fine"]), [gated(gate)]) as agent,
    ):
        task = asyncio.ensure_future(agent.prompt("hi"))
        await gate.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        events = [event async for event in agent.stream("again")]
        assert told(events)[:3] == ["agent_start", "repair", "turn_start"]
        ledger = outline(agent.messages())
        assert ledger[:2] == ["user: hi", "assistant: I work. [c1]"]
        assert ledger[2].startswith("c1: interrupted: ")


# ---- queued messages


@pytest.mark.anyio
async def test_messages_may_be_queued_while_a_run_goes_on_from_any_thread() -> None:
    gate = Gate()
    model = ScriptedModel([calling("wait"), "one", "two"])
    async with Agent(model, [gated(gate)]) as agent:
        run = agent.prompt("hi")
        await gate.reached()
        await asyncio.to_thread(agent.steer, "by the way")
        agent.follow_up(["and then", "never"])
        agent.steer("elsewhere", thread="other")
        assert outline(agent.queued("steering")) == ["user: by the way"]
        gate.open()
        hooks = agent.subscribe(lambda event: clear_at_delivery(agent, event))
        assert (await run).status == "completed"
        hooks()
        assert outline(agent.messages())[2:] == [
            "c1: waited",
            "user: by the way",
            "assistant: one",
            "user: and then",
            "assistant: two",
        ]
        assert agent.queued("steering") == agent.queued("follow_up") == []
        assert outline(agent.queued("steering", thread="other")) == ["user: elsewhere"]


def clear_at_delivery(agent: Agent, event: AnyEvent) -> None:
    if event.type == "queue_update" and event.queue == "follow_up":
        agent.clear_queue("follow_up")


# ---- listening


@pytest.mark.anyio
async def test_a_run_is_over_when_its_last_listener_is_done() -> None:
    order: list[str] = []

    async def listen(event: AnyEvent) -> None:
        if event.type == "agent_end":
            for _ in range(10):
                await asyncio.sleep(0)
            order.append("listener")

    async with Agent(ScriptedModel(["done"])) as agent:
        agent.subscribe(listen)
        await agent.wait_for_idle()
        run = agent.prompt("hi")
        idle = asyncio.ensure_future(agent.wait_for_idle())
        idle.add_done_callback(lambda _: order.append("idle"))
        await run
        order.append("prompt")
        await idle
    assert order[0] == "listener"
    assert set(order[1:]) == {"idle", "prompt"}


@pytest.mark.anyio
async def test_a_consumer_that_leaves_early_does_not_disturb_the_run() -> None:
    async with no_task_left(), Agent(ScriptedModel([calling("quick"), "done"]), [quick]) as agent:
        async for _ in agent.stream("hi"):
            break
        await agent.wait_for_idle()
        assert outline(agent.messages())[-1] == "assistant: done"


@pytest.mark.anyio
async def test_a_consumer_that_is_slow_does_not_hold_the_run_and_sees_everything() -> None:
    async with Agent(ScriptedModel([calling("quick"), "done"]), [quick]) as agent:
        run = agent.prompt("hi")
        seen = [await anext(events := aiter(run))]
        result = await run
        seen += [event async for event in events]
        assert [event async for event in run] == seen
        assert [event.sequence for event in seen] == list(range(len(seen)))
        assert result.status == "completed"


@pytest.mark.anyio
async def test_a_listener_that_is_slow_holds_the_run_but_changes_no_order() -> None:
    heard: list[AnyEvent] = []

    async def slow(event: AnyEvent) -> None:
        for _ in range(7 - event.sequence % 7):
            await asyncio.sleep(0)
        heard.append(event)

    model = ScriptedModel([calling("quick", "quick", "quick"), "done"])
    async with Agent(model, [quick]) as agent:
        agent.subscribe(slow)
        run = agent.prompt("hi")
        seen = [event async for event in run]
        assert [event.sequence for event in seen] == list(range(len(seen)))
        assert sorted(heard, key=lambda event: event.sequence) == seen


@pytest.mark.anyio
async def test_a_listener_may_go_and_a_failing_one_fails_the_run() -> None:
    heard: list[str] = []

    def fail(event: AnyEvent) -> None:
        raise LookupError("in the listener")

    async with Agent(ScriptedModel(["one", "two"])) as agent:
        remove = agent.subscribe(lambda event: heard.append(event.type))
        await agent.prompt("hi")
        remove()
        remove()
        count = len(heard)
        stop = agent.subscribe(fail)
        with pytest.raises(LookupError):
            await agent.prompt("again")
        stop()
        assert (await agent.prompt("and again")).status == "completed"
        assert len(heard) == count


# ---- closing


@pytest.mark.anyio
async def test_closing_cancels_what_goes_on_and_waits_for_it() -> None:
    gate = Gate()
    async with no_task_left():
        agent = Agent(ScriptedModel([Response(text="never", wait_for=gate)]))
        run = agent.prompt("hi")
        await gate.reached()
        await agent.aclose()
        assert (await run).status == "cancelled"
        await agent.aclose()
        with pytest.raises(DatabaseError, match="was closed"):
            await agent.prompt("again")
        with pytest.raises(DatabaseError, match="was closed"):
            agent.messages()


def test_closing_from_another_thread_ends_a_blocking_run() -> None:
    gate, results = Gate(), list[Any]()
    agent = Agent(ScriptedModel([Response(text="never", wait_for=gate)]))
    running = threading.Thread(target=lambda: results.append(agent.run("hi")))
    running.start()
    assert gate.reached_blocking(30)
    agent.close()
    running.join()
    assert results[0].status == "cancelled"


@pytest.mark.anyio
async def test_an_async_caller_may_wait_for_and_close_what_runs_in_the_background() -> None:
    gate = Gate()
    agent = Agent(ScriptedModel([Response(text="never", wait_for=gate)]))
    running = asyncio.ensure_future(asyncio.to_thread(agent.run, "hi"))
    await gate.reached()
    idle = asyncio.ensure_future(agent.wait_for_idle())
    await asyncio.sleep(0)
    idle.cancel()
    idle = asyncio.ensure_future(agent.wait_for_idle())
    await agent.aclose()
    await idle
    assert (await running).status == "cancelled"


@pytest.mark.anyio
async def test_closing_in_a_loop_that_still_runs_something_is_refused_not_hung() -> None:
    gate = Gate()
    agent = Agent(ScriptedModel([Response(text="never", wait_for=gate)]))
    run = agent.prompt("hi")
    await gate.reached()
    with pytest.raises(NestedCallError, match="aclose"):
        agent.close()
    await agent.aclose()
    assert (await run).status == "cancelled"
