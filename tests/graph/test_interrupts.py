"""Runs that are interrupted: how they end, and how a new run carries them on."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, message_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from loopwright.errors import ConfigurationError, InputError
from loopwright.events import AgentEnd, AgentStart
from loopwright.graph.assembly import build
from loopwright.runs import Dependencies
from loopwright.settings import Settings
from loopwright.state.transcript import faults
from tests.support.graphs import Rig, on, outcome, outline, rig, told
from tests.support.providers import said

HI = {"messages": "hi"}


def confirm(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt({'ask': what})}"


def look() -> str:
    """Look."""
    ran.append("look")
    return "seen"


ran: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@pytest.mark.anyio
async def test_a_tool_that_asks_ends_the_run_interrupted_and_the_answer_carries_it_on() -> None:
    made = rig(said("", ("c1", "confirm", {"what": "delete"})), "done", tools=[confirm])
    first = await made.events(HI)
    end = first[-1]
    assert isinstance(end, AgentEnd)
    assert (end.status, end.reason) == ("interrupted", "interrupt")
    assert [waiting["value"] for waiting in end.interrupts] == [{"ask": "delete"}]
    assert outline(end.messages) == ["user: hi", "assistant:  [c1]"]

    second = await made.events(Command(resume="yes"))
    assert isinstance(second[0], AgentStart)
    assert second[0].resumed_from == end.run_id != second[0].run_id
    assert [event.sequence for event in second] == list(range(len(second)))
    assert outcome(second).status == "completed"
    assert outline(await made.ledger())[2:] == ["c1: delete: yes", "assistant: done"]


@pytest.mark.anyio
async def test_a_sibling_that_has_finished_does_not_run_again_on_resume() -> None:
    calls = said("", ("c1", "look", {}), ("c2", "confirm", {"what": "send"}), ("c3", "look", {}))
    made = rig(calls, "done", tools=[look, confirm])
    assert (await made.run(HI)).status == "interrupted"
    assert (await made.run(Command(resume="yes"))).status == "completed"
    assert ran == ["look", "look"]
    assert outline(await made.ledger())[2:5] == ["c1: seen", "c2: send: yes", "c3: seen"]
    assert not faults(await made.ledger())


@pytest.mark.anyio
async def test_two_that_ask_get_their_own_answers_one_after_the_other() -> None:
    calls = said("", ("c1", "confirm", {"what": "a"}), ("c2", "confirm", {"what": "b"}))
    made = rig(calls, "done", tools=[confirm])
    ended = await made.run(HI)
    for word in ("yes", "no"):
        assert [waiting["value"] for waiting in ended.interrupts] == [
            {"ask": {"yes": "a", "no": "b"}[word]}
        ]
        ended = await made.run(Command(resume=word))
    assert outline(await made.ledger())[2:4] == ["c1: a: yes", "c2: b: no"]


@pytest.mark.anyio
async def test_a_new_prompt_instead_of_an_answer_keeps_what_the_siblings_did() -> None:
    calls = said("", ("c1", "look", {}), ("c2", "confirm", {"what": "send"}))
    made = rig(calls, "never mind", said("", ("c3", "look", {})), "done", tools=[look, confirm])
    await made.run(HI)
    events = await made.events({"messages": "forget it"})
    assert told(events)[:2] == ["agent_start", "repair"]
    ledger = outline(await made.ledger())
    assert ledger[2] == "c1: seen"
    assert ledger[3].startswith("c2: interrupted")
    assert (await made.run({"messages": "look again"})).status == "completed"
    assert not faults(await made.ledger())


@pytest.mark.anyio
async def test_a_tool_that_asks_in_a_sequence_lets_the_ones_before_it_stand() -> None:
    calls = said("", ("c1", "look", {}), ("c2", "confirm", {"what": "send"}), ("c3", "look", {}))
    made = rig(
        calls,
        "done",
        tools=[look, confirm],
        settings=Settings(tool_execution="sequential"),
    )
    assert (await made.run(HI)).status == "interrupted"
    assert ran == ["look"]
    assert (await made.run(Command(resume="yes"))).status == "completed"
    assert ran == ["look", "look"]
    assert outline(await made.ledger())[2:5] == ["c1: seen", "c2: send: yes", "c3: seen"]


SCRIPT: Any = [said("I look.", ("c1", "look", {})), said("", ("c2", "missing", {})), "done"]


def whole(made: Rig) -> Rig:
    made.graph.dependencies.log.append("t", "steering", queued("by the way"))
    made.graph.dependencies.log.append("t", "follow_up", queued("and then?"))
    return made


def queued(text: str) -> Any:
    return message_to_dict(HumanMessage(text))


@pytest.mark.anyio
async def test_a_run_stopped_before_every_node_and_resumed_has_the_same_transcript() -> None:
    plain = whole(rig(*SCRIPT, "then this", tools=[look]))
    await plain.run(HI)

    parts = whole(rig(*SCRIPT, "then this", tools=[look], checkpointer=InMemorySaver()))
    nodes = [name for name in parts.graph.nodes if name != "__start__"]
    ended = await parts.run(HI, interrupt_before=nodes)
    stops = 0
    while ended.status == "interrupted":
        assert (ended.reason, ended.interrupts) == ("breakpoint", [])
        stops += 1
        assert stops < 50
        ended = await rebuilt(parts).run(None, interrupt_before=nodes)
    assert (ended.status, ended.reason) == ("completed", "answered")
    assert outline(await parts.ledger()) == outline(await plain.ledger())
    # load; for each of four turns queue_drain, model, stop_hook, two tool batches; the last
    # queue_drain and finish.
    assert stops == 1 + 4 * 3 + 2 + 2


def rebuilt(made: Rig) -> Rig:
    """The same on a graph that was built anew over the same thread."""
    dependencies: Dependencies = made.graph.dependencies
    saver: Any = made.graph.checkpointer
    return Rig(build(dependencies, checkpointer=saver), made.provider)


@pytest.mark.anyio
async def test_a_run_that_was_interrupted_is_still_there_after_a_refused_input() -> None:
    made = rig(said("", ("c1", "confirm", {"what": "x"})), "done", tools=[confirm])
    await made.run(HI)
    with pytest.raises(InputError):
        await made.graph.ainvoke({"messages": [{"__overwrite__": []}]}, on("t"))
    assert (await made.run(Command(resume="yes"))).status == "completed"


@pytest.mark.anyio
async def test_an_interrupt_where_nothing_is_kept_says_what_is_missing() -> None:
    made = rig(said("", ("c1", "confirm", {"what": "x"})), tools=[confirm])
    with pytest.raises(ConfigurationError, match="give the graph a checkpointer"):
        await build(made.graph.dependencies).ainvoke(HI)
