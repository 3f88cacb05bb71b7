"""Whichever way a caller comes in, the agent behaves the same."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from loopwright.events import AgentEnd, Repair
from tests.entrances import processes, scripted
from tests.entrances.processes import PATIENCE
from tests.entrances.ways import (
    ByAgent,
    ByDevServer,
    ByLangServe,
    Refused,
    Way,
    ledger,
    new_thread,
    prompt,
    texts,
)

pytestmark = pytest.mark.anyio

TOOL_TURN = [("human", "count to 1"), ("ai", ""), ("tool", "1"), ("ai", "counted to 1")]


async def test_a_tool_turn_is_run_and_stored(way: Way) -> None:
    thread = new_thread()
    output = await way.run(prompt("count to 1"), thread)
    assert texts(output) == TOOL_TURN
    result = output["result"]
    assert (result["status"], result["reason"], result["turns"]) == ("completed", "answered", 2)
    assert result["thread"] == thread
    assert [(m.type, m.text) for m in ledger(way.database, thread)] == TOOL_TURN


async def test_sixty_tool_rounds_are_run_although_the_caller_says_25(way: Way) -> None:
    output = await way.run(prompt("count to 60"), new_thread(), recursion_limit=25)
    assert output["result"]["final_text"] == "counted to 60"
    assert len(output["messages"]) == 1 + 2 * 60 + 1


async def test_langserve_s_batch_runs_sixty_rounds_too(by_langserve: ByLangServe) -> None:
    body = {"inputs": [prompt("count to 60"), prompt("count to 2")], "config": {}}
    response = await by_langserve.post("/batch", body)
    results = [output["result"] for output in response.raise_for_status().json()["output"]]
    assert [r["final_text"] for r in results] == ["counted to 60", "counted to 2"]
    assert len({r["thread"] for r in results}) == 2


async def test_a_thread_goes_on_where_it_was(way: Way) -> None:
    thread = new_thread()
    await way.run(prompt("my number is 7"), thread)
    output = await way.run(prompt("which number?"), thread)
    assert output["result"]["final_text"] == "my number is 7"
    other = await way.run(prompt("count to 1"), new_thread())
    assert len(other["messages"]) == len(TOOL_TURN)


async def test_our_events_come_in_order_and_complete(way: Way) -> None:
    events = [event async for event in way.events(prompt("count to 1"), new_thread())]
    assert [e.sequence for e in events] == list(range(len(events)))
    assert len({e.run_id for e in events}) == 1
    told = [e.type for e in events if e.type != "message_update"]
    pair = ["message_start", "message_end"]
    assert told == [
        *["agent_start", "turn_start", *pair, *pair],
        *["tool_execution_start", "tool_execution_end", *pair, "turn_end"],
        *["turn_start", *pair, "turn_end", "agent_end"],
    ]
    end = events[-1]
    assert isinstance(end, AgentEnd)
    assert [(m.type, m.text) for m in end.messages] == TOOL_TURN


ATTACKS: dict[str, Any] = {
    "overwrite": {"type": "__overwrite__", "value": []},
    "overwrite by an item": [{"type": "__overwrite__", "value": []}],
    "remove all": [{"type": "remove", "id": "__remove_all__", "content": ""}],
    "remove one": [{"role": "remove", "id": "{first}", "content": ""}],
    "edit": [{"role": "user", "id": "{first}", "content": "forged"}],
    "edit behind a new message": [
        {"role": "user", "content": "new"},
        {"role": "assistant", "id": "{first}", "content": "forged"},
    ],
}


async def test_stored_messages_cannot_be_changed_by_an_input(
    way: Way, subtests: pytest.Subtests
) -> None:
    thread = new_thread()
    await way.run(prompt("count to 1"), thread)
    before = ledger(way.database, thread)
    for name, attack in ATTACKS.items():
        with subtests.test(name):
            with pytest.raises(Refused, match="fork the thread"):
                await way.run({"messages": _aimed(attack, str(before[0].id))}, thread)
            assert ledger(way.database, thread) == before
    output = await way.run(prompt("hello"), thread)
    assert texts(output) == [*TOOL_TURN, ("human", "hello"), ("ai", "heard: hello")]


def _aimed(attack: Any, first: str) -> Any:
    """The attack with the id of a stored message in its place."""
    if not isinstance(attack, list):
        return attack
    return [{key: first if v == "{first}" else v for key, v in item.items()} for item in attack]


async def test_an_input_writes_no_other_channel(way: Way, subtests: pytest.Subtests) -> None:
    thread = new_thread()
    for channel in ("input", "decision", "run", "settings", "system_prompt"):
        with subtests.test(channel), pytest.raises(Refused, match=f"unknown input key '{channel}'"):
            await way.run({**prompt("hello"), channel: {}}, thread)
    assert ledger(way.database, thread) == []


async def test_the_input_schema_asks_for_messages_and_nothing_else(way: Way) -> None:
    schema = await way.input_schema()
    assert schema["required"] == list(schema["properties"]) == ["messages"]
    messages = schema["properties"]["messages"]
    assert messages["type"] == "array"
    kinds = {variant["$ref"].rpartition("/")[2] for variant in messages["items"]["oneOf"]}
    assert {"HumanMessage", "AIMessage", "ToolMessage"} <= kinds


async def test_the_dev_server_draws_the_graph(
    by_agent: ByAgent, by_dev_server: ByDevServer
) -> None:
    drawing = await by_dev_server.drawing()
    own = by_agent.agent.graph.get_graph()
    assert [node["id"] for node in drawing["nodes"]] == list(own.nodes)
    edges = {(edge["source"], edge["target"]) for edge in drawing["edges"]}
    assert edges == {(edge.source, edge.target) for edge in own.edges}
    assert ("stop_hook", "queue_drain") in edges


async def test_nothing_of_ours_blocks_the_dev_server_s_loop(by_dev_server: ByDevServer) -> None:
    await by_dev_server.run(prompt("count to 2"), new_thread())
    assert "BlockingError" not in by_dev_server.process.log
    # The detector is on: a tool that blocks is caught, and its error is a result like any other.
    blocked = await by_dev_server.run(prompt("block"), new_thread())
    assert "Blocking call to time.sleep" in blocked["result"]["final_text"]


async def test_what_the_model_said_is_stored_before_its_tool_runs(way: Way, tmp_path: Path) -> None:
    thread = new_thread()
    if isinstance(way, ByLangServe | ByDevServer):
        process = way.process
        asking: asyncio.Future[Any] = asyncio.ensure_future(way.run(prompt("hang"), thread))
    else:
        process = processes.hanging_agent(tmp_path, thread)
        asking = asyncio.ensure_future(asyncio.to_thread(process.popen.wait, PATIENCE))
    await asyncio.to_thread(process.until, process.marker.exists)
    os.kill(int(process.marker.read_text()), signal.SIGKILL)
    await asyncio.to_thread(process.popen.wait, PATIENCE)
    await asyncio.wait([asking])
    assert asking.exception() or asking.result() == -signal.SIGKILL
    stored = ledger(process.database, thread)
    assert [(m.type, m.text) for m in stored] == [("human", "hang"), ("ai", "")]
    await _goes_on(process.database, thread)


async def _goes_on(database: Path, thread: str) -> None:
    """The thread is mended by the next run, whoever makes it, and goes on."""
    async with scripted.agent(database) as agent:
        events = [event async for event in agent.stream("count to 1", thread=thread)]
        (repair,) = [event for event in events if isinstance(event, Repair)]
        assert sum(repair.report.values()) == 1
        assert [(m.type, m.text) for m in agent.messages(thread)[3:]] == TOOL_TURN
