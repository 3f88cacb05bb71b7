"""Deleting, pruning and reclaiming: what goes, what stays, and who is in the way."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from loopwright import Agent, Settings
from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    UnknownThreadError,
)
from loopwright.testing import ScriptedModel
from tests.support.graphs import outline
from tests.support.processes import start
from tests.support.savers import size
from tests.support.stored import BOTH, FIRST, STORAGES, Effects, Made, making, working


@pytest.fixture(params=STORAGES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    with making(request.param, tmp_path) as make:
        yield make


def test_a_deleted_thread_is_gone_with_what_waited_for_it(made: Made) -> None:
    agent = working(made, "anew")
    fork = agent.fork(at=4)
    agent.steer("waiting")
    agent.delete("t")
    assert [info.id for info in agent.threads()] == [fork]
    assert (agent.queued("steering"), agent.state.messages) == ([], [])
    for thread in ("t", "none"):
        with pytest.raises(UnknownThreadError):
            agent.delete(thread)
    assert outline(agent.messages(fork)) == FIRST
    assert agent.run("again?").final_text == "anew"
    assert outline(agent.messages()) == ["user: again?", "assistant: anew"]
    agent.steer("only this", thread="queue")
    agent.delete("queue")
    assert not agent.queued("steering", thread="queue")


@pytest.mark.anyio
async def test_a_thread_that_is_run_is_not_deleted(made: Made) -> None:
    tool = Effects()
    agent = made(BOTH, "done", tools=[tool.effect])
    run = agent.prompt("go")
    await tool.gate.reached()
    with pytest.raises(BusyThreadError):
        agent.delete("t")
    tool.gate.open()
    assert (await run).status == "completed"


def test_a_thread_that_another_process_runs_is_let_be(tmp_path: Path) -> None:
    with start(RUNNING, tmp_path / "t.db") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in the tool\n"
        with Agent(database=tmp_path / "t.db", thread="t") as agent:
            fork = agent.fork()
            assert len(agent.messages(fork)) == 2
            for refused in (agent.delete, agent.prune, partial(agent.rewind, at=1)):
                with pytest.raises(BusyThreadError, match=f"process {process.pid}"):
                    refused("t")
            process.kill()
            process.communicate()
            agent.rewind(at=1)
            assert outline(agent.messages()) == ["user: go"]
            agent.delete("t")
            assert [info.id for info in agent.threads()] == [fork]


RUNNING = """
import os, sys, threading
from loopwright import Agent, Settings
from loopwright.testing import Response, ScriptedModel

def stuck() -> str:
    "Never ends."
    os.write(1, b"in the tool\\n")
    threading.Event().wait()
    return ""

model = ScriptedModel([Response(calls=[("c1", "stuck", {})])])
with Agent(model, [stuck], database=sys.argv[1], thread="t") as agent:
    agent.run("go")
"""


def test_a_pruned_thread_keeps_its_messages_and_loses_its_past(tmp_path: Path) -> None:
    model = ScriptedModel(["one", "two"])
    with Agent(model, database=tmp_path / "t.db", thread="t") as agent:
        agent.run("1")
        agent.run("2")
        history, messages = agent.history(), agent.messages()
        agent.prune(keep=3)
        assert agent.history() == history[:3]
        agent.prune()
        assert (agent.history(), agent.messages()) == (history[:1], messages)
        for keep in (0, True, 1.5):
            with pytest.raises(ConfigurationError, match="use a whole number of at least 1"):
                agent.prune(keep=keep)  # type: ignore[arg-type]
        with pytest.raises(UnknownThreadError):
            agent.prune("none")


def test_a_run_leaves_as_many_checkpoints_as_it_may(tmp_path: Path) -> None:
    """As in B143, with fewer turns: those of 2 kB each, the last 50 checkpoints kept."""
    words, settings = "x" * 2000, Settings(keep_checkpoints=50)
    path = tmp_path / "t.db"
    with Agent(ScriptedModel([words] * 60), database=path, settings=settings) as agent:
        for number in range(60):
            agent.run(f"{number}")
            assert len(agent.history()) <= 50
        fork = agent.fork(at=agent.history()[-1])
        assert (len(agent.history()), len(agent.messages())) == (50, 120)
        assert len(agent.messages(fork)) == agent.history(fork)[0].messages
    assert size(path) < 600_000


def test_what_only_our_checkpointer_can_do_is_refused_elsewhere() -> None:
    with Agent(ScriptedModel(["one"]), checkpointer=InMemorySaver(), thread="t") as agent:
        agent.run("1")
        for refused in (agent.prune, agent.reclaim):
            with pytest.raises(ConfigurationError, match="own checkpointer, not InMemorySaver"):
                refused()
