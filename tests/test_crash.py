"""A process killed with -9 inside a tool: the thread loads, is repaired, and goes on elsewhere."""

import os
import signal
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from loopwright import Agent
from loopwright.events import AgentStart, Repair
from loopwright.testing import ScriptedModel
from tests.cli.running import loopwright
from tests.providers.offline.driving import cited
from tests.providers.offline.folders import write
from tests.support.processes import start

KILLED_IN_A_TOOL = """
import os, sys, threading
from loopwright import Agent
from loopwright.testing import Response, ScriptedModel

def done(name: str) -> str:
    "Ends."
    return name + " is done"

def stuck() -> str:
    "Never ends."
    os.write(1, b"in the tool\\n")
    threading.Event().wait()
    return ""

script = [
    Response(text="First this.", calls=[("c1", "done", {"name": "one"})]),
    Response(text="Then these.", calls=[("c2", "stuck", {}), ("c3", "stuck", {})]),
]
with Agent(ScriptedModel(script), [done, stuck], database=sys.argv[1], thread="mine") as agent:
    agent.run("do it")
"""


def kill_in_a_tool(database: Path) -> None:
    """Leave a thread `mine` behind whose process died in the middle of its second batch."""
    with start(KILLED_IN_A_TOOL, database) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert (said, process.returncode) == ("in the tool\n", -signal.SIGKILL)


def test_what_was_complete_is_stored_at_the_moment_of_the_kill(tmp_path: Path) -> None:
    kill_in_a_tool(tmp_path / "t.db")
    with Agent(database=tmp_path / "t.db", thread="mine") as agent:
        stored = agent.messages()
    assert [m.text for m in stored] == ["do it", "First this.", "one is done", "Then these."]
    assert isinstance(stored[-1], AIMessage) and len(stored[-1].tool_calls) == 2


@pytest.mark.anyio
async def test_the_next_prompt_repairs_the_thread_and_says_so(tmp_path: Path) -> None:
    kill_in_a_tool(tmp_path / "t.db")
    model = ScriptedModel(["Going on."])
    async with Agent(model, database=tmp_path / "t.db", thread="mine") as agent:
        events = [event async for event in agent.stream("go on")]
        history = agent.messages()
    assert isinstance(events[0], AgentStart) and events[0].resumed_from
    (repair,) = [event for event in events if isinstance(event, Repair)]
    assert sum(repair.report.values()) > 0
    results = [m for m in history if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in results] == ["c1", "c2", "c3"]
    assert [m.status for m in results] == ["success", "error", "error"]
    assert isinstance(history[-2], HumanMessage) and history[-2].text == "go on"
    assert history[-1].text == "Going on."


def test_the_command_line_goes_on_with_the_thread_and_shows_the_repair(tmp_path: Path) -> None:
    kill_in_a_tool(tmp_path / "t.db")
    folder = write(tmp_path / "work", {"a.txt": "TODO: one\n"})
    where = ("--thread", "mine", "--database", tmp_path / "t.db")
    done = loopwright(tmp_path, "demo", folder, *where)
    assert (done.code, done.err) == (0, "")
    assert "mine (continues after 4 messages)" in done.out
    assert "the last run of this thread did not end" in done.out
    assert "repaired (calls without a result marked as interrupted: 2)" in done.out
    assert set(cited(done.out, folder)) == {("a.txt", 1)}
    again = loopwright(tmp_path, "demo", folder, *where)
    assert again.code == 0
    assert "repaired" not in again.out
