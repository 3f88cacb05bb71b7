"""A person is asked before tools run: answers find their calls, and nothing runs twice."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from loopwright import Agent, Hooks
from loopwright.errors import ContinuationError
from loopwright.events import AgentEnd, AgentStart, Approval
from loopwright.hooks import Ask
from loopwright.settings import Settings
from loopwright.state.journal import fingerprint
from loopwright.state.transcript import faults
from loopwright.testing import ScriptedModel
from tests.support.approving import BATCH, Desk, asked, calling, told_by
from tests.support.graphs import on, outline, told
from tests.support.processes import output, start

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "threads.db")


def results(agent: Agent) -> list[str]:
    """The results of the batch, as words."""
    return outline(agent.messages())[2:5]


async def test_all_asks_of_a_batch_come_in_one_interrupt_before_anything_has_run(
    desk: Desk,
) -> None:
    async with desk.agent(calling(*BATCH)) as agent:
        result, events = await told_by(agent.prompt("go"))
        assert (result.status, result.reason, desk.ran) == ("interrupted", "interrupt", [])
        asks = [
            {
                "call_id": id,
                "tool": "delete",
                "arguments": {"path": path},
                "hash": fingerprint({"path": path}),
                "reason": "for good",
                "details": {"path": path},
            }
            for id, path in (("c1", "a"), ("c3", "b"))
        ]
        assert [waiting["value"] for waiting in result.interrupts] == [{"asks": asks}]
        assert isinstance(events[-2], Approval) and events[-2].asks == asks
        assert isinstance(events[-1], AgentEnd)
        assert [event.sequence for event in events] == list(range(len(events)))
        assert outline(agent.messages()) == ["user: go", "assistant: I work. [c1 c2 c3]"]


EDIT = {"decision": "edit", "arguments": {"path": "b.tmp"}}
ANSWERS: dict[str, tuple[Any, list[str], list[str]]] = {
    "both approved": (
        {"c1": "approve", "c3": "approve"},
        ["delete a", "delete b", "look"],
        ["c1: deleted a", "c2: seen", "c3: deleted b"],
    ),
    "in another order": (
        {"c3": "reject", "c1": {"decision": "approve"}},
        ["delete a", "look"],
        ["c1: deleted a", "c2: seen", "c3: Rejected."],
    ),
    "rejected and edited": (
        {"c3": EDIT, "c1": {"decision": "reject", "reason": "keep it"}},
        ["delete b.tmp", "look"],
        ["c1: Rejected: keep it", "c2: seen", "c3: deleted b.tmp"],
    ),
    "edited and approved": (
        {"c1": {"decision": "edit", "arguments": {"path": 5}}, "c3": "approve"},
        ["delete 5", "delete b", "look"],
        ["c1: deleted 5", "c2: seen", "c3: deleted b"],
    ),
}


@pytest.mark.parametrize("restarted", [False, True], ids=["one agent", "restarted"])
@pytest.mark.parametrize("name", ANSWERS)
async def test_answers_reach_their_own_calls_and_nothing_runs_twice(
    name: str, restarted: bool, desk: Desk
) -> None:
    answers, ran, expected = ANSWERS[name]
    agent = desk.agent(calling(*BATCH), "done")
    first = await agent.prompt("go")
    if restarted:
        await agent.aclose()
        agent = desk.agent("done")
    async with agent:
        result, events = await told_by(agent.resume(answers))
        assert result.status == "completed"
        assert isinstance(events[0], AgentStart) and events[0].resumed_from == first.run_id
        assert "approval" not in told(events)
        assert sorted(desk.ran) == ran
        assert results(agent) == expected
        assert not faults(agent.messages())
        with pytest.raises(ContinuationError, match="nothing to resume"):
            await agent.resume(answers)
        assert sorted(desk.ran) == ran


ASKING = """
    import json, pathlib, sys
    from tests.support.approving import BATCH, Desk, calling

    desk = Desk(pathlib.Path(sys.argv[1]))
    result = desk.agent(calling(*BATCH)).run("go")
    print(json.dumps([result.status, desk.ran, result.interrupts[0]["value"]["asks"]]), flush=True)
    if sys.argv[2:]:
        sys.stdin.read()
"""
MIXED = {"c1": "reject", "c3": EDIT}


async def test_the_answers_may_come_from_another_process(desk: Desk) -> None:
    status, ran, asks = json.loads(output(ASKING, desk.database))
    assert (status, ran, [ask["call_id"] for ask in asks]) == ("interrupted", [], ["c1", "c3"])
    async with desk.agent("done") as agent:
        assert (await agent.resume(MIXED)).status == "completed"
        assert sorted(desk.ran) == ["delete b.tmp", "look"]
        assert results(agent) == ["c1: Rejected.", "c2: seen", "c3: deleted b.tmp"]


async def test_a_process_that_is_killed_while_it_waits_loses_no_ask(desk: Desk) -> None:
    with start(ASKING, desk.database, "wait") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())[0] == "interrupted"
        process.send_signal(signal.SIGKILL)
    async with desk.agent("done") as agent:
        assert (await agent.resume(MIXED)).status == "completed"
        assert sorted(desk.ran) == ["delete b.tmp", "look"]


@pytest.mark.parametrize(
    ("answers", "first", "second"),
    [
        ({}, "Rejected: no answer was given", "Rejected: no answer was given"),
        ({"c1": "approve"}, "deleted a", "Rejected: no answer was given"),
        ({"zz": "approve", "c3": "approve"}, "Rejected: no answer was given", "deleted b"),
        ("approve", "Rejected: no answer was given", "Rejected: no answer was given"),
        (["approve", "approve"], "Rejected: no answer", "Rejected: no answer"),
        ({"c1": True, "c3": "maybe"}, "Rejected: no answer", "Rejected: 'maybe' is no answer."),
        ({"c1": {}, "c3": "approve"}, "Rejected: '' is no answer.", "deleted b"),
        (
            {"c1": {"decision": "approve", "hash": fingerprint({"path": "b"})}, "c3": "approve"},
            "Rejected: the answer was given for other arguments.",
            "deleted b",
        ),
        (
            {"c1": {"decision": "approve", "hash": fingerprint({"path": "a"})}, "c3": "reject"},
            "deleted a",
            "Rejected.",
        ),
        (
            {"c1": {"decision": "edit", "arguments": {"file": "x"}}, "c3": {"decision": "edit"}},
            "The edited arguments are not valid.",
            "The edited arguments are not valid.",
        ),
    ],
)
async def test_what_is_no_answer_to_a_call_rejects_it(
    answers: Any, first: str, second: str, desk: Desk
) -> None:
    async with desk.agent(calling(*BATCH), "done") as agent:
        await agent.prompt("go")
        assert (await agent.resume(answers)).status == "completed"
        got = results(agent)
        assert got[0].startswith(f"c1: {first}") and got[2].startswith(f"c3: {second}")
        assert desk.ran.count("look") == 1
        rejected = [not text.startswith("deleted") for text in (first, second)]
        statuses = [m.status == "error" for m in agent.messages()[2:5]]  # type: ignore[union-attr]
        assert statuses == [rejected[0], False, rejected[1]]


async def test_details_without_a_json_form_leave_a_note(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "t.db")
    hooks = Hooks(before_tool_call=lambda context: Ask(details={"at": object()}))
    model = ScriptedModel([calling(BATCH[1])])
    async with Agent(model, desk.tools(), database=desk.database, hooks=hooks) as agent:
        (waiting,) = (await agent.prompt("go")).interrupts
    (ask,) = waiting["value"]["asks"]
    assert ask["details"] == {
        "note": "left out: a value of type object at at, which has no JSON form"
    }


async def test_one_word_answers_the_only_ask(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH[:2]), "done") as agent:
        assert asked(await agent.prompt("go")) == ["c1"]
        await agent.resume("approve")
        assert sorted(desk.ran) == ["delete a", "look"]


async def test_call_ids_that_look_like_ids_of_interrupts_are_answered_too(desk: Desk) -> None:
    blank = [("", name, arguments) for _, name, arguments in BATCH]
    async with desk.agent(calling(*blank), "done") as agent:
        first, second = asked(await agent.prompt("go"))
        assert len(first) == 32
        result = await agent.resume({second: "approve", first: "reject"})
        assert (result.status, sorted(desk.ran)) == ("completed", ["delete b", "look"])


async def test_the_graph_takes_answers_plainly_or_under_the_id_of_the_interrupt(
    desk: Desk,
) -> None:
    async with desk.agent(calling(*BATCH[:2]), "done", calling(*BATCH[1:]), "done") as agent:
        for call in ("c1", "c3"):
            (waiting,) = (await agent.prompt("go")).interrupts
            given: Any = {call: "approve"}
            command: Any = Command(resume=given if call == "c1" else {waiting["id"]: given})
            output = await agent.graph.ainvoke(command, on("t"))
            assert output["result"]["status"] == "completed"
        assert sorted(desk.ran) == ["delete a", "delete b", "look", "look"]


async def test_carrying_on_without_an_answer_asks_again(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH), "done") as agent:
        await agent.prompt("go")
        again, events = await told_by(agent.resume())
        assert (again.status, asked(again), desk.ran) == ("interrupted", ["c1", "c3"], [])
        assert told(events)[-2:] == ["approval", "agent_end"]
        assert (await agent.resume({"c1": "approve", "c3": "reject"})).status == "completed"
        assert sorted(desk.ran) == ["delete a", "look"]


SEQUENTIAL = Settings(tool_execution="sequential")


@pytest.mark.parametrize("restarted", [False, True], ids=["one agent", "restarted"])
async def test_in_a_sequence_each_is_asked_in_its_turn_and_what_has_run_is_stored(
    restarted: bool, desk: Desk
) -> None:
    calls = [BATCH[1], BATCH[0], BATCH[2]]
    agent = desk.agent(calling(*calls), "done", settings=SEQUENTIAL)
    assert asked(await agent.prompt("go")) == ["c1"]
    assert (desk.ran, results(agent)) == (["look"], ["c2: seen"])
    for answers, waiting, ran in (
        ({"c1": "approve"}, ["c3"], ["look", "delete a"]),
        ({"c3": EDIT}, [], ["look", "delete a", "delete b.tmp"]),
    ):
        if restarted:
            await agent.aclose()
            agent = desk.agent("done", settings=SEQUENTIAL)
        result = await agent.resume(answers)
        assert desk.ran == ran
        assert (asked(result) if result.interrupts else []) == waiting
    assert result.status == "completed"
    assert results(agent) == ["c2: seen", "c1: deleted a", "c3: deleted b.tmp"]
    assert not faults(agent.messages())
    await agent.aclose()


async def test_a_new_prompt_instead_of_an_answer_closes_the_open_calls(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH), "never mind", "fine") as agent:
        waiting = await agent.prompt("go")
        result, events = await told_by(agent.prompt("forget it"))
        assert told(events)[:2] == ["agent_start", "repair"]
        assert isinstance(events[0], AgentStart) and events[0].resumed_from == waiting.run_id
        assert (result.status, desk.ran) == ("completed", [])
        assert not faults(agent.messages())
        with pytest.raises(ContinuationError, match="nothing to resume"):
            await agent.resume({"c1": "approve", "c3": "approve"})
        assert (desk.ran, (await agent.prompt("and now?")).status) == ([], "completed")
