"""Going back: the history of a thread, forks of it, and rewinding, with the queues beside them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Settings
from loopwright.errors import (
    BusyThreadError,
    ThreadExistsError,
    UnknownMomentError,
    UnknownThreadError,
)
from loopwright.state.doctor import examine
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.approving import Desk, asked, calling
from tests.support.graphs import on, outline
from tests.support.stored import (
    BOTH,
    FIRST,
    STORAGES,
    WHOLE,
    Effects,
    Made,
    look,
    making,
    working,
)


@pytest.fixture(params=STORAGES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    with making(request.param, tmp_path) as make:
        yield make


def test_the_history_tells_what_was_stored_when_the_newest_first(made: Made) -> None:
    agent = working(made)
    history = agent.history()
    assert [m.messages for m in history] == sorted((m.messages for m in history), reverse=True)
    assert [m.time for m in history] == sorted((m.time for m in history), reverse=True)
    assert (history[0].messages, history[0].decision, history[0].next) == (6, "done", None)
    ended = [m for m in history if m.next is None]
    assert [(m.messages, m.turn) for m in ended] == [(6, 1), (4, 2)]
    nodes = [m.next for m in reversed(history)][2:9]
    assert nodes == [
        "queue_drain",
        "model",
        "tool_batch",
        "stop_hook",
        "queue_drain",
        "model",
        "stop_hook",
    ]
    assert len({m.run for m in history if m.run}) == 2
    assert history[0].parent == history[1].id
    assert history[-1].parent is None and history[-1].source == "input"
    assert agent.history(limit=3) == history[:3]


def test_messages_are_those_of_the_moment(made: Made) -> None:
    agent = working(made)
    assert outline(agent.messages()) == WHOLE
    for moment in agent.history():
        assert outline(agent.messages(at=moment)) == WHOLE[: moment.messages]
    assert outline(agent.messages(at=2)) == WHOLE[:2]


def test_a_fork_begins_as_the_thread_was_and_goes_on_by_itself(made: Made) -> None:
    agent = working(made, "three", "other")
    fork = agent.fork(at=4, name="other")
    assert fork == "other"
    assert outline(agent.messages(fork)) == FIRST
    agent.run("three?")
    agent.run("other?", thread=fork)
    assert outline(agent.messages())[4:] == [*WHOLE[4:], "user: three?", "assistant: three"]
    assert outline(agent.messages(fork)) == [*FIRST, "user: other?", "assistant: other"]
    assert {info.id for info in agent.threads()} == {"t", "other"}
    first = agent.history(fork)[-1]
    assert (first.source, first.parent, first.messages) == ("fork", None, 4)


def test_a_fork_without_more_words_is_of_now_and_has_a_new_name(made: Made) -> None:
    agent = working(made, "again")
    fork = agent.fork()
    assert fork not in ("t", "")
    assert outline(agent.messages(fork)) == WHOLE
    assert agent.run("more?", thread=fork).final_text == "again"


def test_a_rewound_thread_goes_on_from_there_and_keeps_its_past(made: Made) -> None:
    agent = working(made, "anew")
    before = agent.history()
    agent.rewind(at=4)
    assert outline(agent.messages()) == FIRST
    assert outline(agent.state.messages) == FIRST
    assert agent.history()[1:] == before
    assert agent.run("three?").final_text == "anew"
    assert outline(agent.messages()) == [*FIRST, "user: three?", "assistant: anew"]
    assert outline(agent.messages(at=before[0])) == WHOLE
    agent.rewind(at=before[0])
    assert outline(agent.messages()) == WHOLE


def test_rewinding_to_the_last_moment_changes_nothing(made: Made) -> None:
    agent = working(made)
    before = agent.history()
    agent.rewind(at=before[0])
    assert agent.history() == before


def test_a_moment_is_named_by_itself_its_id_a_beginning_of_that_or_a_length(made: Made) -> None:
    agent = working(made)
    history = agent.history()
    settled = next(m for m in history if m.messages == 4 and m.next is None)
    for at in (settled, settled.id, settled.id[:-1], 4):
        assert agent.history(agent.fork(at=at))[-1].id == settled.id
    wrong: list[Any] = ["", "none", 99, -1, True, 1.5, history[0].id[:1]]
    for at in wrong:
        with pytest.raises(UnknownMomentError, match="`loopwright history t` lists them"):
            agent.fork(at=at)
    other = agent.fork(name="u", at=2)
    with pytest.raises(UnknownMomentError):
        agent.rewind(other, at=history[0])


def test_what_is_not_there_or_is_there_already_is_said(made: Made) -> None:
    agent = working(made)
    for refused in (agent.history, agent.messages, agent.fork):
        with pytest.raises(UnknownThreadError):
            refused("none")
    with pytest.raises(UnknownThreadError):
        agent.rewind("none", at=0)
    with pytest.raises(ThreadExistsError, match="'t' exists already"):
        agent.fork(at=2, name="t")
    assert outline(agent.messages()) == WHOLE


@pytest.mark.anyio
async def test_a_fork_of_a_running_thread_is_of_what_is_stored(made: Made) -> None:
    gate = Gate()

    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    agent = made(Response(calls=[("c1", "wait", {})]), "done", "other", tools=[wait])
    run = agent.prompt("go")
    await gate.reached()
    fork = agent.fork()
    assert outline(agent.messages(fork)) == ["user: go", "assistant:  [c1]"]
    with pytest.raises(BusyThreadError):
        agent.rewind(at=1)
    gate.open()
    assert (await run).final_text == "done"
    result = await agent.prompt("and?", thread=fork)
    assert result.final_text == "other"
    assert outline(agent.messages(fork))[2].startswith("c1: interrupted")
    assert outline(agent.messages())[2:] == ["c1: waited", "assistant: done"]


@pytest.mark.anyio
async def test_a_fork_of_the_middle_of_a_run_is_resumed_from_there(made: Made) -> None:
    agent = working(made, "seen otherwise", "and again")
    middle = next(m for m in agent.history() if m.messages == 3 and m.decision == "turn")
    fork = agent.fork(at=middle)
    result = await agent.resume(thread=fork)
    assert (result.status, result.final_text) == ("completed", "seen otherwise")
    assert outline(agent.messages(fork)) == [*FIRST[:3], "assistant: seen otherwise"]
    agent.rewind(at=middle)
    assert (await agent.resume()).final_text == "and again"
    assert outline(agent.messages()) == [*FIRST[:3], "assistant: and again"]


@pytest.mark.anyio
async def test_old_steering_is_not_delivered_again_and_new_is(made: Made) -> None:
    agent = working(made, "steered", "rewound", "forked")
    agent.steer("old")
    await agent.prompt("three?")
    assert "user: old" in outline(agent.messages())
    agent.steer("waiting")
    fork = agent.fork(at=6)
    agent.rewind(at=6)
    agent.steer("new")
    agent.steer("new here", thread=fork)
    await agent.prompt("four?")
    await agent.prompt("four?", thread=fork)
    assert outline(agent.messages())[6:] == ["user: four?", "user: new", "assistant: rewound"]
    assert outline(agent.messages(fork))[6:] == [
        "user: four?",
        "user: new here",
        "assistant: forked",
    ]
    assert not agent.queued("steering") and not agent.queued("steering", thread=fork)


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["resume", "prompt"])
async def test_a_fork_of_a_running_batch_has_no_effect_again(made: Made, way: str) -> None:
    tool, one_by_one = Effects(), Settings(tool_execution="sequential")
    agent = made(BOTH, "forked", "first", tools=[tool.effect], settings=one_by_one)
    run = agent.prompt("go")
    await tool.gate.reached()
    fork = agent.fork()
    again = agent.prompt("and?", thread=fork) if way == "prompt" else agent.resume(thread=fork)
    assert (await again).final_text == "forked"
    tool.gate.open()
    await run
    results = outline(agent.messages(fork))[2:4]
    assert (results[0], results[1][:15]) == ("c1: did one", "c2: interrupted")
    assert tool.done == ["one", "two"]
    assert outline(agent.messages())[2:4] == ["c1: did one", "c2: did two"]


@pytest.mark.anyio
async def test_a_copy_by_the_checkpointer_has_no_effect_again(tmp_path: Path) -> None:
    tool, one_by_one = Effects(), Settings(tool_execution="sequential")
    model = ScriptedModel([BOTH, "copied", "first"])
    where: Any = {"database": tmp_path / "t.db", "settings": one_by_one}
    async with Agent(model, [tool.effect], thread="t", **where) as agent:
        run = agent.prompt("go")
        await tool.gate.reached()
        agent.graph.checkpointer.copy_thread("t", "copy")  # type: ignore[union-attr]
        assert (await agent.resume(thread="copy")).final_text == "copied"
        tool.gate.open()
        await run
        results = outline(agent.messages("copy"))[2:4]
        assert (results[0], results[1][:15]) == ("c1: did one", "c2: interrupted")
        assert tool.done == ["one", "two"]


@pytest.mark.anyio
async def test_a_thread_rewound_into_a_batch_has_no_effect_again(made: Made) -> None:
    tool = Effects()
    tool.gate.open()
    agent = made(BOTH, "done", "done again", tools=[tool.effect])
    await agent.prompt("go")
    agent.rewind(at=next(m for m in agent.history() if m.next == "tool_batch"))
    assert len(agent.messages()) == 2
    assert (await agent.resume()).final_text == "done again"
    assert outline(agent.messages())[2:4] == ["c1: did one", "c2: did two"]
    assert sorted(tool.done) == ["one", "two"]


@pytest.mark.anyio
async def test_a_fork_of_a_question_is_answered_by_itself(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "t.db")
    async with desk.agent(calling(("c1", "delete", {"path": "a"})), "yes", "no", "again") as agent:
        question = await agent.prompt("clean up")
        fork = agent.fork()
        done = await agent.resume({"c1": "approve"}, thread=fork)
        assert (done.final_text, desk.ran) == ("yes", ["delete a"])
        assert question.interrupts[0]["value"] == agent.graph.get_state(on("t")).interrupts[0].value
        done = await agent.resume({"c1": "reject"})
        assert (done.final_text, desk.ran) == ("no", ["delete a"])
        agent.rewind(at=next(m for m in agent.history() if m.next == "tool_batch"))
        asked_again = await agent.resume()
        assert asked(asked_again) == ["c1"] and desk.ran == ["delete a"]


def test_a_fork_leaves_nothing_that_belongs_to_nothing(tmp_path: Path) -> None:
    calls = [Response(calls=[("c1", "look", {"at": str(n)})]) for n in range(6)]
    with Agent(ScriptedModel([*calls, "done"]), [look], database=tmp_path / "t.db") as agent:
        agent.run("go")  # what has not changed for so long is stored as a value of its own
        for moment in agent.history():
            agent.fork(at=moment)
        assert not examine(tmp_path / "t.db").findings
