"""The one way in: what a caller's config cannot change, what is refused, what runs side by side."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.types import Command, Overwrite

from loopwright.errors import (
    BusyThreadError,
    ContinuationError,
    InputError,
    UnknownModelError,
)
from loopwright.events import AgentEnd, AgentStart
from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.settings import Settings
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.testing import Gate
from tests.support.graphs import Rig, on, outline, rig
from tests.support.providers import said, steps
from tests.support.tasks import no_task_left

HI = {"messages": "hi"}


def look() -> str:
    """Look."""
    return "seen"


async def stored(made: Rig) -> list[str]:
    """All checkpoints of the thread, as ids."""
    history = made.graph.aget_state_history(on("t"))
    return [str(s.config["configurable"]["checkpoint_id"]) async for s in history]


@pytest.mark.anyio
async def test_a_caller_s_recursion_limit_does_not_end_a_run() -> None:
    calls = [said("", (f"c{n}", "look", {})) for n in range(60)]
    made = rig(*calls, "done", tools=[look], settings=Settings(repeatable=("look",)))
    answer = await made.graph.ainvoke(HI, on("t", recursion_limit=25))
    assert answer["result"]["status"] == "completed"
    assert answer["result"]["turns"] == 61


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wish",
    [
        {"durability": "exit"},
        {"durability": "async"},
        {"checkpoint_during": False},
        {"durability": "exit", "checkpoint_during": True},
        {},
    ],
    ids=str,
)
async def test_every_step_is_stored_before_the_next_whatever_the_caller_says(
    wish: dict[str, Any], tmp_path: Path
) -> None:
    database = Database(tmp_path / "threads.db")
    seen: list[list[str]] = []

    def peek() -> str:
        """Read the thread from another connection."""
        other = Database(tmp_path / "threads.db")
        saved = SqliteCheckpointer(other).get_tuple(on("t"))
        assert saved is not None
        seen.append(outline(saved.checkpoint["channel_values"]["messages"]))
        other.close()
        return "peeked"

    made = rig(
        said("I peek.", ("c1", "peek", {})),
        "done",
        tools=[peek],
        checkpointer=SqliteCheckpointer(database),
    )
    await made.graph.ainvoke(HI, on("t"), **wish)
    assert seen == [["user: hi", "assistant: I peek. [c1]"]]
    database.close()


REFUSED: list[Any] = [
    {"messages": Overwrite([])},
    {"messages": {"type": "__overwrite__", "value": []}},
    {"messages": [RemoveMessage("u")]},
    {"messages": [], "view": {}},
    Command(update={"messages": [HumanMessage("x")]}),
    Command(goto="finish"),
]


@pytest.mark.anyio
@pytest.mark.parametrize("given", REFUSED, ids=repr)
async def test_an_input_that_would_change_the_transcript_is_refused_and_nothing_is_stored(
    given: Any,
) -> None:
    made = rig("hello")
    await made.run({"messages": [HumanMessage("hi", id="u")]})
    before = await stored(made)
    with pytest.raises(InputError):
        await made.graph.ainvoke(given, on("t"))
    assert await stored(made) == before
    made.provider.script.append("still fine")
    assert (await made.run(HI)).final_text == "still fine"


@pytest.mark.anyio
async def test_a_message_that_is_stored_already_is_refused_and_the_ledger_stays() -> None:
    made = rig("hello")
    await made.run({"messages": [HumanMessage("hi", id="u")]})
    before = await made.ledger()
    with pytest.raises(InputError, match="message 'u' is already stored"):
        await made.run({"messages": [HumanMessage("edited", id="u")]})
    assert await made.ledger() == before


@pytest.mark.anyio
async def test_a_refused_configuration_tells_nothing_and_leaves_the_ledger() -> None:
    made = rig("hello")
    await made.run(HI)
    before = await made.ledger()

    def unknown(name: str) -> Any:
        raise UnknownModelError(name, "others")

    object.__setattr__(made.graph.dependencies, "resolve", unknown)
    events: list[Any] = []
    with pytest.raises(UnknownModelError):
        async for event in made.graph.astream(HI, on("t"), stream_mode="custom"):
            events.append(event)
    assert events == []
    assert await made.ledger() == before


@pytest.mark.anyio
async def test_a_second_run_on_a_busy_thread_is_refused_by_name_and_disturbs_nothing() -> None:
    gate = Gate()
    made = rig([gate, *steps("done")], "other")
    async with no_task_left():
        first = asyncio.ensure_future(made.run(HI))
        await gate.reached()
        with pytest.raises(BusyThreadError, match="thread 't' is busy"):
            await made.run({"messages": "me too"})
        gate.open()
        assert (await first).final_text == "done"
    assert outline(await made.ledger()) == ["user: hi", "assistant: done"]


@pytest.mark.anyio
async def test_runs_on_different_threads_go_side_by_side() -> None:
    gates = [Gate(), Gate()]
    made = rig(*([gate, *steps("done")] for gate in gates))
    runs = [asyncio.ensure_future(made.run(HI, name)) for name in "ab"]
    for gate in gates:
        await gate.reached()
    for gate in gates:
        gate.open()
    assert [(await run).thread for run in runs] == ["a", "b"]


@pytest.mark.anyio
async def test_a_run_without_a_thread_gets_one_of_its_own() -> None:
    made = rig("one", "two")
    results = [(await made.graph.ainvoke(HI))["result"] for _ in range(2)]
    assert results[0]["thread"] != results[1]["thread"]


@pytest.mark.anyio
async def test_a_graph_called_in_a_tool_of_another_has_a_run_of_its_own() -> None:
    inner = rig("from inside")

    async def delegate() -> str:
        """Ask the other agent."""
        answer = await inner.graph.ainvoke({"messages": "task"})
        return str(answer["result"]["final_text"])

    outer = rig(said("", ("c1", "delegate", {})), "done", tools=[delegate])
    events = await outer.events(HI)
    assert outline(await outer.ledger())[2] == "c1: from inside"
    assert [event.sequence for event in events] == list(range(len(events)))
    assert sum(isinstance(event, AgentStart) for event in events) == 1


@pytest.mark.anyio
async def test_callers_see_input_and_output_not_the_channels_within() -> None:
    graph = rig().graph
    assert set(graph.get_input_jsonschema()["properties"]) == {"messages"}
    assert set(graph.get_output_schema().model_json_schema()["properties"]) == {
        "messages",
        "result",
    }
    assert "max_turns" in (graph.get_context_jsonschema() or {})["properties"]


@pytest.mark.anyio
async def test_a_changed_config_keeps_the_entrance() -> None:
    made = rig("hello")
    bound = made.graph.with_config(tags=["x"])
    assert isinstance(bound, AgentGraph)
    assert (await bound.ainvoke(HI, on("t")))["result"]["status"] == "completed"


@pytest.mark.anyio
async def test_overrides_hold_for_one_run() -> None:
    made = rig("one", "two", tools=[look], system_prompt="the agent's")
    await made.run(HI, context={"system_prompt": "the run's", "tools": [], "max_turns": 1})
    await made.run(HI)
    first, second = made.provider.requests
    assert (first.system_prompt, [tool.name for tool in first.tools]) == ("the run's", [])
    assert (second.system_prompt, [tool.name for tool in second.tools]) == ("the agent's", ["look"])


@pytest.mark.anyio
@pytest.mark.parametrize("given", [None, Command(resume="yes")], ids=repr)
async def test_there_is_nothing_to_resume_on_a_thread_that_has_ended(given: Any) -> None:
    made = rig("hello")
    with pytest.raises(ContinuationError, match="'t' has nothing to resume"):
        await made.run(given)
    await made.run(HI)
    before = await stored(made)
    with pytest.raises(ContinuationError, match="'t' has nothing to resume"):
        await made.run(given)
    assert await stored(made) == before


@pytest.mark.anyio
async def test_nothing_can_be_resumed_where_nothing_is_kept() -> None:
    made = rig("hello")
    graph = build(made.graph.dependencies)
    with pytest.raises(ContinuationError, match="checkpointer"):
        await graph.ainvoke(None, on("t"))
    assert (await graph.ainvoke(HI))["result"]["final_text"] == "hello"


@pytest.mark.anyio
async def test_an_end_is_told_once_and_last() -> None:
    events = await rig("hello").events(HI)
    assert [type(event) for event in events].index(AgentEnd) == len(events) - 1
