"""Earlier checkpoints through LangGraph's own ways: queued messages are not delivered again."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from loopwright import Agent
from loopwright.errors import UnknownMomentError
from loopwright.testing import ScriptedModel
from tests.support.graphs import on, outline

OLD = ["user: one?", "assistant: one"]


@pytest.fixture(params=["file", "memory"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An agent whose thread was steered in its second run."""
    database = tmp_path / "t.db" if request.param == "file" else None
    script = ScriptedModel(["one", "two", "three", "four"])
    with Agent(script, database=database, thread="t") as agent:
        agent.run("one?")
        agent.steer("old")
        agent.run("two?")
        assert outline(agent.messages())[2:4] == ["user: two?", "user: old"]
        yield agent


def earlier(agent: Agent) -> Any:
    """The config of the moment at which the first run had ended."""
    moment = next(m for m in agent.history() if m.messages == 2 and m.next is None)
    return on("t", configurable={"thread_id": "t", "checkpoint_id": moment.id})


def test_a_run_from_an_earlier_checkpoint_begins_there(agent: Agent) -> None:
    agent.steer("dropped")
    output = agent.graph.invoke({"messages": "other?"}, earlier(agent))
    assert outline(output["messages"]) == [*OLD, "user: other?", "assistant: three"]
    assert outline(agent.messages()) == outline(output["messages"])
    agent.steer("new")
    agent.run("more?")
    assert outline(agent.messages())[4:] == ["user: more?", "user: new", "assistant: four"]


def test_a_run_carried_on_from_an_earlier_checkpoint_too(agent: Agent) -> None:
    middle = next(m for m in agent.history() if m.messages == 1 and m.next == "queue_drain")
    config = on("t", configurable={"thread_id": "t", "checkpoint_id": middle.id})
    agent.graph.invoke(None, config)
    assert outline(agent.messages()) == ["user: one?", "assistant: three"]


def test_an_update_of_an_earlier_checkpoint_moves_the_cursor_too(agent: Agent) -> None:
    agent.graph.update_state(earlier(agent), {"messages": [HumanMessage("edited")]}, "finish")
    agent.run("more?")
    expected = [*OLD, "user: edited", "user: more?", "assistant: three"]
    assert outline(agent.messages()) == expected


def test_a_copy_of_an_earlier_checkpoint_with_changes_does_so_as_well(agent: Agent) -> None:
    values: Any = [({"messages": [HumanMessage("edited")]}, "finish")]
    agent.graph.update_state(earlier(agent), values, "__copy__")
    agent.run("more?")
    assert outline(agent.messages()) == [*OLD, "user: edited", "user: more?", "assistant: three"]


def test_the_newest_checkpoint_may_be_named_as_well(agent: Agent) -> None:
    newest = agent.history()[0]
    agent.steer("waiting")
    config = on("t", configurable={"thread_id": "t", "checkpoint_id": newest.id})
    agent.graph.invoke({"messages": "more?"}, config)
    assert outline(agent.messages())[5:7] == ["user: more?", "user: waiting"]


def test_a_checkpoint_that_is_not_there_is_refused(agent: Agent) -> None:
    before = agent.history()
    config = on("t", configurable={"thread_id": "t", "checkpoint_id": "none"})
    with pytest.raises(UnknownMomentError):
        agent.graph.invoke({"messages": "more?"}, config)
    assert agent.history() == before


def test_a_thread_deleted_by_the_checkpointer_has_no_queue_left(agent: Agent) -> None:
    agent.steer("waiting")
    agent.graph.checkpointer.delete_thread("t")  # type: ignore[union-attr]
    assert not agent.queued("steering")
    agent.run("anew?")
    assert outline(agent.messages()) == ["user: anew?", "assistant: three"]
