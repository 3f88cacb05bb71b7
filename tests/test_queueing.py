"""A prompt for a busy thread, by option: run here or by the run that goes on, exactly once."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from loopwright import Agent, queueing
from loopwright.errors import BusyThreadError, ConfigurationError, InputError
from loopwright.queueing import queue_behind
from loopwright.queues import enqueue
from loopwright.state.messages import as_messages
from loopwright.state.transcript import faults
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.graphs import on, outline
from tests.support.processes import start
from tests.support.tasks import no_task_left

pytestmark = pytest.mark.anyio


def agent(path: Path | None, *script: Any, **parts: Any) -> Agent:
    return Agent(ScriptedModel(script), database=path, thread="t", **parts)


@pytest.fixture(params=["file", "memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "t.db" if request.param == "file" else None


async def test_a_free_thread_is_claimed_at_once_and_the_prompt_is_a_run_like_any_other(
    path: Path | None,
) -> None:
    async with no_task_left(), agent(path, "hello") as one:
        run = one.prompt("hi", when_busy="follow_up")
        with pytest.raises(BusyThreadError):
            one.prompt("me too")
        assert one.signal is not None
        events = [event async for event in run]
        assert (events[0].type, events[-1].type) == ("agent_start", "agent_end")
        assert (await run).status == "completed"
        await run.settled()


async def test_behind_a_run_that_goes_on_it_is_queued_at_once_and_delivered_by_that_run(
    path: Path | None,
) -> None:
    gate = Gate()
    async with no_task_left(), agent(path, Response(text="one", wait_for=gate), "two") as one:
        first = one.prompt("hi")
        await gate.reached()
        queued = await one.prompt("and then?", when_busy="follow_up")
        assert (queued.status, queued.reason, queued.thread) == ("queued", "follow_up", "t")
        assert (queued.messages, queued.final_text, queued.turns) == ([], "", 0)
        assert outline(one.queued("follow_up")) == ["user: and then?"]
        gate.open()
        result = await first
        assert result.run_id == queued.run_id
        assert outline(one.messages()) == [
            "user: hi",
            "assistant: one",
            "user: and then?",
            "assistant: two",
        ]
        assert one.queued("follow_up") == []


async def test_a_queued_prompt_has_no_events_and_may_hold_several_messages(
    path: Path | None,
) -> None:
    gate = Gate()
    async with agent(path, Response(text="one", wait_for=gate), "two", "three") as one:
        first = one.prompt("hi")
        await gate.reached()
        stream = one.stream([("user", "a"), ("user", "b")], when_busy="follow_up")
        assert [event async for event in stream] == []
        gate.open()
        await first
        assert outline(one.messages())[2:] == [
            "user: a",
            "assistant: two",
            "user: b",
            "assistant: three",
        ]


async def test_a_thread_in_use_by_another_agent_of_the_process_is_one_too(tmp_path: Path) -> None:
    gate = Gate()
    async with (
        agent(tmp_path / "t.db", Response(text="one", wait_for=gate), "two") as one,
        agent(tmp_path / "t.db") as other,
    ):
        first = one.prompt("hi")
        await gate.reached()
        assert (await other.prompt("more", when_busy="follow_up")).status == "queued"
        gate.open()
        assert (await first).final_text == "two"


async def test_what_a_queue_does_not_take_is_refused_and_nothing_is_queued(
    path: Path | None,
) -> None:
    gate = Gate()
    async with agent(path, Response(text="one", wait_for=gate)) as one:
        first = one.prompt("hi")
        await gate.reached()
        with pytest.raises(InputError, match="no tool calls and no results"):
            await one.prompt(ToolMessage("x", tool_call_id="c"), when_busy="follow_up")
        gate.open()
        await first
        assert len(one.messages()) == 2


async def test_behind_the_last_poll_of_a_run_the_prompt_waits_for_its_end_and_runs_itself(
    path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    async with no_task_left(), agent(path, "one", "two") as one:
        log: Any = one.graph.dependencies.log
        poll = log.poll

        async def slow(thread: str, kinds: Any, after: int = 0) -> Any:
            found = await poll(thread, kinds, after)
            if "follow_up" in kinds:  # it has found nothing, but its step is not over
                await gate.wait()
            return found

        monkeypatch.setattr(log, "poll", slow)
        first = one.prompt("hi")
        await gate.reached()
        second = one.prompt("and then?", when_busy="follow_up")
        waits = asyncio.ensure_future(anext(aiter(second)))
        for _ in range(20):
            await asyncio.sleep(0)
            await log.database.settled()
        assert not waits.done()
        gate.open()
        assert (await first).final_text == "one"
        assert (await second).final_text == "two"
        assert (await waits).run_id == (await second).run_id != (await first).run_id
        assert outline(one.messages())[2:] == ["user: and then?", "assistant: two"]
        assert one.queued("follow_up") == []


async def test_at_the_end_of_a_run_the_prompt_waits_and_may_be_cancelled(
    path: Path | None,
) -> None:
    gate = Gate()

    async def hold(event: Any) -> None:
        if event.type == "agent_end":
            await gate.wait()

    async with no_task_left(), agent(path, "one", "two") as one:
        one.subscribe(hold)
        first = one.prompt("hi")
        await gate.reached()
        second = asyncio.ensure_future(aresult(one, "and then?"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        assert second.cancelled()
        gate.open()
        await first
        assert len(one.messages()) == 2
        assert one.queued("follow_up") == []


async def aresult(one: Agent, text: str) -> Any:
    return await one.prompt(text, when_busy="follow_up")


async def test_cancelling_whoever_awaits_a_prompt_that_runs_cancels_the_run(
    path: Path | None,
) -> None:
    gate = Gate()
    async with no_task_left(), agent(path, Response(text="one", wait_for=gate), "two") as one:
        running = asyncio.ensure_future(aresult(one, "hi"))
        await gate.reached()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        await one.wait_for_idle()
        assert (await one.prompt("again")).status == "completed"


async def test_an_interrupted_run_takes_no_messages_so_the_prompt_runs_itself(
    path: Path | None,
) -> None:
    gate = Gate()

    def ask() -> str:
        """Ask a person."""
        return str(interrupt("really?"))

    async def hold(event: Any) -> None:
        if event.type == "agent_end" and event.status == "interrupted":
            await gate.wait()

    calls = Response(calls=[("c1", "ask", {})])
    async with agent(path, calls, "two", tools=[ask]) as one:
        one.subscribe(hold)
        first = one.prompt("hi")
        await gate.reached()
        second = one.prompt("never mind", when_busy="follow_up")
        await asyncio.sleep(0)
        gate.open()
        assert (await first).status == "interrupted"
        assert (await second).final_text == "two"
        assert not faults(one.messages())


async def test_nothing_is_queued_behind_a_run_that_was_cut_off(path: Path | None) -> None:
    async with agent(path, "one", "two") as one:
        cut = one.graph.astream({"messages": "hi"}, on("t"), interrupt_before=["model"])
        assert [chunk async for chunk in cut]
        assert one.graph.get_state(on("t")).next == ("model",)
        assert await queue_behind(one.graph, "t", as_messages("and then?")) is None
        assert one.queued("follow_up") == []
        assert (await one.prompt("and then?", when_busy="follow_up")).status == "completed"


async def test_no_step_is_stored_between_the_look_at_a_run_and_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, tried = Gate(), []

    def late(log: Any, thread: str, queue: Any, messages: Any) -> list[int]:
        with closing(sqlite3.connect(tmp_path / "t.db", timeout=0)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                tried.append(str(error))
        return enqueue(log, thread, queue, messages)

    monkeypatch.setattr(queueing, "enqueue", late)
    async with agent(tmp_path / "t.db", Response(text="one", wait_for=gate), "two") as one:
        first = one.prompt("hi")
        await gate.reached()
        assert (await one.prompt("and then?", when_busy="follow_up")).status == "queued"
        gate.open()
        await first
    assert tried == ["database is locked"]


async def test_with_a_checkpointer_of_one_s_own_the_prompt_waits_for_its_turn() -> None:
    gate = Gate()
    saver: Any = InMemorySaver()
    model = ScriptedModel([Response(text="one", wait_for=gate), "two"])
    async with Agent(model, checkpointer=saver, thread="t") as one:
        first = one.prompt("hi")
        await gate.reached()
        second = one.prompt("and then?", when_busy="follow_up")
        await asyncio.sleep(0)
        gate.open()
        assert [(await run).final_text for run in (first, second)] == ["one", "two"]


def test_the_blocking_form_takes_the_option_too_and_an_unknown_word_is_refused() -> None:
    with agent(None, "hello") as one:
        assert one.run("hi", when_busy="follow_up").final_text == "hello"
        with pytest.raises(ConfigurationError, match="when_busy is 'wait': use error or follow_up"):
            one.run("hi", when_busy=cast(Any, "wait"))


async def heard(one: Agent, number: int) -> str:
    """The status of one of many prompts."""
    for _ in range(number % 5):  # not all at the same moment
        await asyncio.sleep(0)
    return (await one.prompt(f"prompt {number}", when_busy="follow_up")).status


async def test_many_prompts_at_once_are_each_answered_exactly_once(path: Path | None) -> None:
    async with agent(path, *["done"] * 60) as one:
        for turn in range(3):
            numbers = range(20 * turn, 20 * turn + 20)
            statuses = Counter(await asyncio.gather(*(heard(one, n) for n in numbers)))
            await one.wait_for_idle()
            assert {*statuses} <= {"completed", "queued"} and statuses["completed"]
        assert prompts(one) == sorted(f"prompt {n}" for n in range(60))
        assert one.queued("follow_up") == []


def prompts(one: Agent) -> list[str]:
    return sorted(message.text for message in one.messages() if message.type == "human")


SPEAKER = """
    import sys
    from collections import Counter
    from loopwright import Agent
    from loopwright.testing import ScriptedModel

    path, name = sys.argv[1:]
    with Agent(ScriptedModel(["done"] * 200), database=path, thread="t") as agent:
        prompts = [f"{name} {number}" for number in range(20)]
        print(dict(Counter(agent.run(text, when_busy="follow_up").status for text in prompts)))
"""


def test_prompts_of_several_processes_are_each_answered_exactly_once(tmp_path: Path) -> None:
    with ExitStack() as ends:
        speakers = [ends.enter_context(start(SPEAKER, tmp_path / "t.db", n)) for n in "abc"]
        ended = [one.communicate(timeout=120) for one in speakers]
    assert [err for _, err in ended] == [""] * 3
    with agent(tmp_path / "t.db") as judge:
        assert prompts(judge) == sorted(f"{name} {n}" for name in "abc" for n in range(20))
        assert judge.queued("follow_up") == []
        assert not faults(judge.messages())
        kinds = [message.type for message in judge.messages()]
        assert kinds == ["human", "ai"] * 60
    assert any("queued" in out for out, _ in ended)
