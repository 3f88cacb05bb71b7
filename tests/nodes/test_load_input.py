"""What a run may begin with: continuations, queued prompts, and pieces of a transcript."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.errors import (
    ContinuationError,
)
from loopwright.nodes.load import load
from loopwright.queues import enqueue
from loopwright.runs import Run
from loopwright.settings import Settings
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig, told
from tests.support.openings import continuing, kind, opening, refusal
from tests.support.states import scene


@pytest.mark.anyio
@pytest.mark.parametrize("tail", [user("u"), result("r", "c1")], ids=["user", "result"])
async def test_a_transcript_without_an_answer_at_its_end_is_continued(tail: AnyMessage) -> None:
    made = scene()
    update = await load(continuing([user("x"), answer("a", "c1"), tail]), made.run)
    assert kind(update) == "opening"
    assert told(made.events) == ["agent_start", "turn_start"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("queue", "decided"), [("steering", "opening_polled"), ("follow_up", "opening")]
)
async def test_behind_an_answer_the_prompt_comes_from_the_queues(queue: Any, decided: str) -> None:
    made = scene()
    enqueue(made.run.dependencies.log, "t", queue, ["one", "two"])
    update = await load(continuing([user("u"), answer("a")]), made.run)
    assert kind(update) == decided
    assert told(made.events) == [
        "agent_start",
        "turn_start",
        "queue_update",
        "message_start user",
        "message_end user",
    ]
    assert outline(made.run.appended) == ["user: one"]


@pytest.mark.anyio
async def test_steering_goes_before_follow_ups() -> None:
    made = scene(settings=Settings(steering_mode="all"))
    enqueue(made.run.dependencies.log, "t", "follow_up", "later")
    enqueue(made.run.dependencies.log, "t", "steering", ["one", "two"])
    await load(continuing([user("u"), answer("a")]), made.run)
    assert outline(made.run.appended) == ["user: one", "user: two"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "no messages to continue from"),
        ([user("u"), answer("a")], "ends with an answer and nothing is queued"),
    ],
)
async def test_there_may_be_nothing_to_continue_from(messages: list[AnyMessage], says: str) -> None:
    made = scene()
    if not messages:
        enqueue(made.run.dependencies.log, "t", "steering", "not enough")
    assert kind(await load(continuing(messages), made.run)) == "refused"
    error = refusal(made)
    assert isinstance(error, ContinuationError) and error.thread == "t"
    assert says in str(error)


@pytest.mark.anyio
async def test_a_message_is_delivered_once_though_a_listener_fails_at_it() -> None:
    made = rig("hello", "fine", "fine")
    await made.run({"messages": "hi"})
    enqueue(made.graph.dependencies.log, "t", "steering", "by the way")

    def fail(event: Any) -> None:
        if event.type == "message_end" and event.message.text == "by the way":
            raise KeyError

    remove = made.graph.dependencies.listeners.add(fail)
    assert (await made.run({"continue": True})).reason == "fault"
    remove()
    await made.run({"messages": "next"})
    assert outline(await made.ledger()).count("user: by the way") == 1
    assert (await made.graph.aget_state(on("t"))).values["cursor"]["steering"] == 1


@pytest.mark.anyio
async def test_a_transcript_that_its_owner_has_edited_replaces_the_stored_one() -> None:
    made = scene()
    run: Run = made.run
    run.transcript = [HumanMessage("edited", id="e"), AIMessage("yes", id="f")]
    update = await load(opening([user("u"), answer("a")], user("v")), run)
    assert made.run.rewritten == run.transcript
    assert update["run"]["first"] == 2


# ---- prompts that are transcripts


@pytest.mark.anyio
@pytest.mark.parametrize(
    "prompts",
    [
        [user("v"), answer("b", "c9"), result("s", "c9"), user("w")],
        [answer("b")],
        [result("s", "c1")],
    ],
    ids=["a whole exchange", "an answer", "the result of an open call"],
)
async def test_a_prompt_may_be_a_piece_of_a_transcript(prompts: list[AnyMessage]) -> None:
    made = scene()
    before = opening([user("u"), answer("a", "c1")], *prompts)
    assert kind(await load(before, made.run)) == "opening"
    assert made.run.appended == prompts


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("prompts", "says"),
    [
        ([answer("b", "c9")], "unanswered call, call 'c9'"),
        ([answer("b", "c9"), user("v"), result("s", "c9")], "unanswered call, call 'c9'"),
        ([result("s", "c9")], "orphan result, call 'c9'"),
        ([answer("b", "c1"), result("s", "c1")], "call 'c1'"),
        ([result("s", "c1"), result("r", "c1")], "duplicate result, call 'c1'"),
    ],
)
async def test_a_prompt_that_would_break_the_transcript_is_refused(
    prompts: list[AnyMessage], says: str
) -> None:
    made = scene()
    before = opening([user("u"), answer("a", "c1")], *prompts)
    assert kind(await load(before, made.run)) == "refused"
    assert says in str(refusal(made))


@pytest.mark.anyio
async def test_calls_that_an_earlier_run_left_open_do_not_refuse_a_prompt() -> None:
    made = scene(settings=Settings(cancel_policy="leave"))
    before = opening([user("u"), answer("a", "c1")], user("v"))
    assert kind(await load(before, made.run)) == "opening"
