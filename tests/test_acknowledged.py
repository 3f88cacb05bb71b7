"""What the stream of a run calls complete is stored: another reader of the file finds it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Settings
from loopwright.events import AgentEnd, AnyEvent, Event, MessageEnd
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.testing import Response, ScriptedModel

SCRIPT: list[Response | str] = [
    Response(text="First.", calls=[("c1", "look", {"at": "a"}), ("c2", "look", {"at": "b"})]),
    Response(text="Then.", calls=[("c3", "look", {"at": "c"})]),
    "done",
]


def look(at: str) -> str:
    """Look at something."""
    return f"{at} seen"


def stored(path: Path) -> dict[str, Any]:
    """The newest state of the thread, as someone else who opens the file sees it."""
    database = Database(path)
    try:
        saver = SqliteCheckpointer(database)
        found = saver.get_tuple({"configurable": {"thread_id": "mine", "checkpoint_ns": ""}})
        return {} if found is None else found.checkpoint["channel_values"]
    finally:
        database.close()


async def by_agent(agent: Agent) -> AsyncIterator[AnyEvent]:
    async for event in agent.stream("go"):
        yield event


async def by_graph(agent: Agent) -> AsyncIterator[AnyEvent]:
    config: Any = {"configurable": {"thread_id": "mine"}}
    async for event in agent.graph.astream({"messages": "go"}, config, stream_mode="custom"):
        assert isinstance(event, Event)
        yield event  # type: ignore[misc]


@pytest.mark.anyio
@pytest.mark.parametrize("tool_execution", ["parallel", "sequential"])
@pytest.mark.parametrize("streamed", [by_agent, by_graph])
async def test_a_message_that_was_told_on_the_stream_is_in_the_file(
    streamed: Any, tool_execution: Any, tmp_path: Path
) -> None:
    settings = Settings(tool_execution=tool_execution)
    told: list[AnyEvent] = []
    async with Agent(
        ScriptedModel(SCRIPT),
        [look],
        database=tmp_path / "t.db",
        thread="mine",
        settings=settings,
    ) as agent:
        async for event in streamed(agent):
            told.append(event)
            if isinstance(event, MessageEnd):
                # A result of a sequential batch is in the journal before it is in the ledger.
                journaled = tool_execution == "sequential" and event.message.type == "tool"
                ids = [message.id for message in stored(tmp_path / "t.db")["messages"]]
                assert event.message.id in ids or journaled
            if isinstance(event, AgentEnd):
                assert stored(tmp_path / "t.db")["result"]["status"] == "completed"
    assert [event.sequence for event in told] == list(range(len(told)))
    assert isinstance(told[-1], AgentEnd)
