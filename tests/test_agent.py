"""The face that a user sees: every way to start a run, and what is stored of it."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from loopwright import Agent
from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    ContinuationError,
    InputError,
)
from loopwright.events import AnyEvent, to_json
from loopwright.outcome import RunResult
from loopwright.settings import Settings
from loopwright.testing import Response, ScriptedModel
from tests.support.graphs import on, outline, told


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script() -> list[Any]:
    """Two turns: parallel calls, one of them of no tool, then text."""
    calls = [("c1", "add", {"a": 1, "b": 2}), ("c2", "missing", {}), ("c3", "add", {"a": "x"})]
    usage = {"input_tokens": 5, "output_tokens": 7}
    return [Response(text="I count.", calls=calls, usage=usage), Response(text="It is 3.")]


def anonymous(value: Any) -> Any:
    """JSON in which every made-up id is replaced by the number of its first appearance."""
    seen: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return seen.setdefault(match.group(), f"id-{len(seen)}")

    return json.loads(
        re.sub(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", number, json.dumps(value))
    )


def shown(result: RunResult) -> Any:
    messages = [message.model_dump(mode="json") for message in result.messages]
    return anonymous({**vars(result), "messages": messages})


HI = {"messages": "hi"}
Way = Callable[[Agent], Awaitable[tuple[Any, Any]]]
"""Runs one prompt; gives the result and the events that it hands out, None for what it does not."""


async def awaited(agent: Agent) -> tuple[Any, Any]:
    return shown(await agent.prompt("hi")), None


async def blocking(agent: Agent) -> tuple[Any, Any]:
    return shown(await asyncio.to_thread(agent.run, "hi")), None


async def iterated(agent: Agent) -> tuple[Any, Any]:
    run = agent.prompt("hi")
    events = [event async for event in run]
    return shown(await run), events


async def streamed(agent: Agent) -> tuple[Any, Any]:
    return None, [event async for event in agent.stream("hi")]


async def by_the_graph(agent: Agent) -> tuple[Any, Any]:
    stream = agent.graph.astream(HI, on("t"), stream_mode="custom")
    return None, [event async for event in stream]


async def by_the_blocking_graph(agent: Agent) -> tuple[Any, Any]:
    stream = agent.graph.stream(HI, on("t"), stream_mode="custom")
    return None, await asyncio.to_thread(list, stream)


async def played(way: Way) -> tuple[Any, Any, Any]:
    """The result, the events handed out and those that a listener heard, with made-up ids told
    apart only."""
    heard: list[AnyEvent] = []
    async with Agent(ScriptedModel(script()), [add], thread="t") as agent:
        agent.subscribe(heard.append)
        result, events = await way(agent)
    return result, events and plain(events), plain(heard)


def plain(events: Sequence[AnyEvent]) -> Any:
    return anonymous([to_json(event) for event in events])


@pytest.mark.anyio
@pytest.mark.parametrize("way", [blocking, iterated, streamed, by_the_graph, by_the_blocking_graph])
async def test_every_way_to_run_gives_the_same_result_and_the_same_events(way: Way) -> None:
    expected, _, told_events = await played(awaited)
    assert (expected["final_text"], expected["turns"], expected["thread"]) == ("It is 3.", 2, "t")
    assert expected["usage"]["estimated"] and expected["usage"]["total_tokens"] > 12
    result, events, heard = await played(way)
    assert heard == told_events
    assert result in (expected, None)
    assert events in (told_events, None)


def test_four_threads_may_run_at_once(tmp_path: Path) -> None:
    with Agent(ScriptedModel(["done"] * 8), database=tmp_path / "t.db") as agent:
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(agent.run, f"hi {n}", thread=f"t{n}") for n in range(8)]
        assert {run.result().status for run in runs} == {"completed"}
        for n in range(8):
            assert outline(agent.messages(f"t{n}")) == [f"user: hi {n}", "assistant: done"]


@pytest.mark.anyio
async def test_a_blocking_run_works_inside_a_running_loop() -> None:
    async with Agent(ScriptedModel(["done"])) as agent:
        assert agent.run("hi").final_text == "done"


def test_a_blocking_run_in_an_async_tool_is_refused_clearly() -> None:
    agent: Agent

    async def delegate() -> str:
        """Ask in a way that would wait for itself."""
        return agent.run("task", thread="other").final_text

    model = ScriptedModel([Response(calls=[("c1", "delegate", {})]), "done"])
    with Agent(model, [delegate]) as agent:
        assert agent.run("hi").status == "completed"
        assert "use the async method (await agent.prompt(...)" in agent.messages()[2].text


def test_a_blocking_run_in_a_blocking_tool_works() -> None:
    agent: Agent

    def delegate() -> str:
        """Ask another thread of the same agent."""
        return agent.run("task", thread="other").final_text

    model = ScriptedModel([Response(calls=[("c1", "delegate", {})]), "from inside", "done"])
    with Agent(model, [delegate]) as agent:
        assert agent.run("hi").final_text == "done"
        assert agent.messages()[2].text == "from inside"


def test_an_async_run_needs_a_loop_and_leaves_the_thread_free_without_one() -> None:
    with Agent(ScriptedModel(["done"])) as agent:
        for start in (agent.prompt, agent.stream):
            with pytest.raises(ConfigurationError, match=r"use run\(\) instead"):
                start("hi")
        assert agent.run("hi").status == "completed"


@pytest.mark.anyio
async def test_a_second_run_of_a_thread_is_refused_by_name_before_anything_is_awaited() -> None:
    async with Agent(ScriptedModel(["done", "other"]), thread="mine") as agent:
        first = agent.prompt("hi")
        for start in (agent.prompt, agent.stream):
            with pytest.raises(BusyThreadError, match="thread 'mine' is busy"):
                start("me too")
        other = agent.prompt("hi", thread="another")
        assert {(await first).final_text, (await other).final_text} == {"done", "other"}
        assert outline(agent.messages()) == ["user: hi", f"assistant: {(await first).final_text}"]


@pytest.mark.anyio
async def test_a_prompt_inside_the_last_listener_is_refused_as_that_run_s_fault() -> None:
    async with Agent(ScriptedModel(["done", "next"])) as agent:

        def again(event: AnyEvent) -> None:
            if event.type == "agent_end" and event.status == "completed":
                agent.prompt("again")

        remove = agent.subscribe(again)
        result = await agent.prompt("hi")
        assert result.error is not None and result.error["kind"] == "BusyThreadError"
        remove()
        assert (await agent.prompt("again")).status == "completed"


@pytest.mark.anyio
async def test_prompts_are_text_images_messages_and_lists() -> None:
    png = b"\x89PNG\r\n\x1a\n"
    async with Agent(ScriptedModel(["one", "two", "three", "four"])) as agent:
        await agent.prompt("look", images=[png, "https://host/x.png"])
        await agent.prompt(HumanMessage("a message"))
        await agent.prompt([("user", "two"), {"role": "assistant", "content": "x"}, "three"])
        await agent.prompt([])
        kinds = [block["type"] for block in agent.messages()[0].content_blocks]
        assert kinds == ["text", "image", "image"]
        assert outline(agent.messages())[2:] == [
            "user: a message",
            "assistant: two",
            "user: two",
            "assistant: x",
            "user: three",
            "assistant: three",
            "assistant: four",
        ]
        for wrong in ([3], [AIMessage("x"), None]):
            with pytest.raises(InputError):
                agent.prompt(wrong)
        assert len(agent.messages()) == 9


@pytest.mark.anyio
async def test_failing_and_unknown_tools_and_bad_arguments_are_results() -> None:
    def broken() -> None:
        """Fail."""
        raise OSError("disk on fire")

    calls: list[Any] = [("c1", "broken", {}), ("c2", "missing", {})]
    calls += [("c3", "add", {"a": 1, "c": 2}), ("c4", "add", '{"a": 1,')]
    async with Agent(ScriptedModel([Response(calls=calls), "sorry"]), [broken, add]) as agent:
        assert (await agent.prompt("hi")).final_text == "sorry"
        results = outline(agent.messages())[2:-1]
    starts = ["c1: disk on fire", "c2: Tool missing not found. Available tools: add, broken"]
    starts += ['c3: Validation failed for tool "add"', "c4: Not executed: "]
    assert [line[: len(start)] for line, start in zip(results, starts, strict=True)] == starts


@pytest.mark.anyio
async def test_a_model_that_raises_fails_the_run_and_the_user_s_message_is_kept() -> None:
    model = ScriptedModel([RuntimeError("no route"), "fine"])
    async with Agent(model, settings=Settings(retries=0)) as agent:
        result = await agent.prompt("hi")
        assert (result.status, result.reason) == ("failed", "model_error")
        assert result.error == {"kind": "unknown", "message": "no route"}
        assert (await agent.prompt("again")).final_text == "fine"
        assert outline(agent.messages())[0] == "user: hi"


# ---- continuing


@pytest.mark.anyio
async def test_a_run_is_continued_from_what_is_queued_behind_an_answer() -> None:
    async with Agent(ScriptedModel(["one", "two", "three"])) as agent:
        with pytest.raises(ContinuationError, match="no messages"):
            await agent.continue_()
        await agent.prompt("hi")
        with pytest.raises(ContinuationError, match="nothing is queued"):
            await agent.continue_()
        agent.follow_up("later")
        agent.steer("first")
        events = [event async for event in agent.continue_()]
        assert told(events)[:4] == [
            "agent_start",
            "turn_start",
            "queue_update",
            "message_start user",
        ]
        assert [e.sequence for e in events] == list(range(len(events)))
        assert outline(agent.messages())[2:] == [
            "user: first",
            "assistant: two",
            "user: later",
            "assistant: three",
        ]


@pytest.mark.anyio
async def test_a_continuation_is_asked_again_by_those_who_iterate_it() -> None:
    async with Agent(ScriptedModel([])) as agent:
        run = agent.continue_()
        with pytest.raises(ContinuationError):
            async for _ in run:
                pass
        with pytest.raises(ContinuationError):
            await agent.resume()
