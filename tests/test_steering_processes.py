"""`loopwright steer`, `follow-up` and `abort` as commands of another process than the run's."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, ToolContext
from loopwright.testing import Gate, Response, ScriptedModel
from tests.cli.running import Ended, loopwright
from tests.support.graphs import outline

pytestmark = pytest.mark.anyio

CALL = Response(text="I work.", calls=[("c1", "work", {})])


def agent(home: Path, *script: Any, tools: Any = ()) -> Agent:
    """An agent over the database that the commands use."""
    return Agent(ScriptedModel(script), tools, database=home / "threads.db", thread="mine")


def say(home: Path, *words: str) -> Ended:
    """One command about the database, run to its end."""
    return loopwright(home, *words, "--database", "threads.db")


async def said(home: Path, *commands: tuple[str, ...]) -> list[str]:
    """What commands print that run side by side; all of them end well and quietly."""
    ended = await asyncio.gather(*(asyncio.to_thread(say, home, *words) for words in commands))
    assert [(one.code, one.err) for one in ended] == [(0, "")] * len(ended)
    return [one.out for one in ended]


async def test_what_is_queued_while_a_tool_runs_is_delivered_once_at_its_boundary(
    tmp_path: Path,
) -> None:
    gate = Gate()

    async def work() -> str:
        """Work until the gate opens."""
        await gate.wait()
        return "worked"

    async with agent(tmp_path, CALL, "one", "two", "three", tools=[work]) as running:
        run = running.prompt("go")
        await gate.reached()
        commands = [("steer", "mine", "be brief"), ("follow-up", "mine", "then tests")]
        assert await said(tmp_path, *commands) == [
            "queued for the next turn of mine\n",
            "queued for the end of the run of mine\n",
        ]
        assert outline(running.queued("steering")) == ["user: be brief"]
        assert outline(running.queued("follow_up")) == ["user: then tests"]
        gate.open()
        assert (await run).status == "completed"
        expected = [
            "user: go",
            "assistant: I work. [c1]",
            "c1: worked",
            "user: be brief",
            "assistant: one",
            "user: then tests",
            "assistant: two",
        ]
        assert outline(running.messages()) == expected
        assert running.queued("steering") == running.queued("follow_up") == []
        await running.prompt("more")
        assert outline(running.messages()) == [*expected, "user: more", "assistant: three"]


async def test_an_abort_reaches_the_run_that_goes_on_and_no_later_one(tmp_path: Path) -> None:
    begun = Gate()

    async def work(context: ToolContext) -> str:
        """Work until the run is cancelled."""
        begun.open()
        await context.signal.wait()
        return f"stopped: {context.signal.reason}"

    async with agent(tmp_path, CALL, "never said", "fine", tools=[work]) as running:
        run = running.prompt("go")
        await begun.wait()
        told = await said(tmp_path, ("abort", "mine", "--reason", "enough"))
        assert told == ["asked the run of mine to stop\n"]
        result = await run
        assert (result.status, result.reason) == ("cancelled", "aborted")
        assert outline(running.messages())[2] == "c1: stopped: enough"
        assert (await running.prompt("again")).status == "completed"


async def test_an_idle_thread_keeps_what_is_queued_for_its_next_run_and_ignores_an_abort(
    tmp_path: Path,
) -> None:
    async with agent(tmp_path, "hello") as first:
        await first.prompt("hi")
    await said(tmp_path, ("steer", "mine", "by the way"), ("abort", "mine"))
    async with agent(tmp_path, "one", "two") as second:
        assert outline(second.queued("steering")) == ["user: by the way"]
        assert (await second.prompt("go on")).status == "completed"
        assert outline(second.messages())[2:] == [
            "user: go on",
            "user: by the way",
            "assistant: one",
        ]
        assert second.queued("steering") == []


def test_an_unknown_thread_is_one_line_and_makes_nothing(tmp_path: Path) -> None:
    with agent(tmp_path, "hello") as other:
        other.run("hi")
    empty = tmp_path / "empty"
    empty.mkdir()
    commands = [
        (tmp_path, "steer", "nope", "x"),
        (tmp_path, "abort", "nope"),
        (empty, "follow-up", "nope", "x"),
    ]
    with ThreadPoolExecutor() as pool:
        ended = list(pool.map(lambda command: say(*command), commands))
    for one in ended:
        assert (one.code, one.out, one.err.count("\n")) == (2, "", 1)
    *known, missing = [one.err for one in ended]
    assert all(line.startswith("loopwright: unknown thread 'nope'") for line in known)
    assert "threads.db': there is no such file" in missing
    assert list(empty.iterdir()) == []
    with agent(tmp_path) as again:
        assert [info.id for info in again.threads()] == ["mine"]
        assert again.queued("steering", thread="nope") == []
