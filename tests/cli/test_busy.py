"""`loopwright run` on a thread that another process runs: refused in a line, or queued."""

import asyncio
from pathlib import Path

import pytest

from loopwright import Agent
from loopwright.testing import Gate, Response, ScriptedModel
from tests.cli.running import Ended, loopwright
from tests.support.graphs import outline

pytestmark = pytest.mark.anyio


async def say(home: Path, *words: str) -> Ended:
    """A prompt for the thread, as a command of its own."""
    command = ("run", "and then?", "--thread", "mine", "--database", "threads.db", *words)
    return await asyncio.to_thread(loopwright, home, *command)


async def test_a_prompt_for_a_busy_thread_is_refused_or_queued_as_the_caller_wants(
    tmp_path: Path,
) -> None:
    gate = Gate()
    model = ScriptedModel([Response(text="one", wait_for=gate), "two"])
    async with Agent(model, database=tmp_path / "threads.db", thread="mine") as agent:
        run = agent.prompt("hi")
        await gate.reached()
        refused = await say(tmp_path)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith("loopwright: thread 'mine' is busy: process ")
        assert refused.err.count("\n") == 1
        queued = await say(tmp_path, "--when-busy", "follow-up")
        assert (queued.code, queued.out) == (0, "")
        assert queued.err == "queued as a follow-up of the run that goes on; thread mine\n"
        gate.open()
        assert (await run).final_text == "two"
        assert outline(agent.messages())[2:] == ["user: and then?", "assistant: two"]


async def test_on_a_free_thread_the_option_changes_nothing(tmp_path: Path) -> None:
    done = await say(tmp_path, "--when-busy", "follow-up")
    assert done.code == 0
    assert "completed" in done.err
