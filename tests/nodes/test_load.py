"""The node that begins a run: what it admits, mends and freezes, and what it refuses."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.errors import (
    ConfigurationError,
    ContinuationError,
    InputError,
    UnknownModelError,
)
from loopwright.nodes.load import load
from loopwright.queues import enqueue
from loopwright.runs import Run, Update
from loopwright.settings import Limits, Settings
from loopwright.state.repair import INTERRUPTED
from loopwright.state.schema import Admission, AgentState, View
from loopwright.state.transcript import faults
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig, told
from tests.support.providers import said
from tests.support.states import Scene, record, scene, state

BROKEN: list[AnyMessage] = [user("u"), answer("a", "c1", "c2"), result("r", "c1")]


def opening(messages: list[AnyMessage], *prompts: AnyMessage, **channels: Any) -> AgentState:
    """The state that a run with these prompts finds."""
    channels.setdefault("run", record(id="last", status="ended"))
    given = Admission(kind="prompt", messages=list(prompts))
    return state(messages, "done", input=given, **channels)


def continuing(messages: list[AnyMessage]) -> AgentState:
    given = Admission(kind="continue", messages=[])
    return opening(messages) | {"input": given}  # type: ignore[return-value]


def kind(update: Update) -> str:
    return str(update["decision"]["kind"])


def refusal(made: Scene) -> Any:
    assert not made.events
    assert not made.run.appended
    return made.run.refusal


@pytest.mark.anyio
async def test_the_prompts_are_told_and_appended() -> None:
    made = scene()
    update = await load(opening([], user("u1"), user("u2")), made.run)
    assert kind(update) == "opening"
    assert told(made.events) == [
        "agent_start",
        "turn_start",
        *["message_start user", "message_end user"] * 2,
    ]
    assert [m.id for m in made.run.appended] == ["u1", "u2"]
    assert update["run"]["status"] == "running"
    assert (update["run"]["turn"], update["run"]["first"]) == (1, 0)


@pytest.mark.anyio
async def test_a_prompt_may_be_empty() -> None:
    made = scene()
    assert kind(await load(opening([user("u")]), made.run)) == "opening"
    assert told(made.events) == ["agent_start", "turn_start"]


@pytest.mark.anyio
async def test_what_this_run_produces_begins_behind_the_older_messages() -> None:
    update = await load(opening([user("u"), answer("a")], user("v")), scene().run)
    assert update["run"]["first"] == 2


@pytest.mark.anyio
async def test_a_message_that_is_stored_already_is_refused() -> None:
    made = scene()
    assert kind(await load(opening([user("u")], user("u", "edited")), made.run)) == "refused"
    assert isinstance(refusal(made), InputError)


@pytest.mark.anyio
async def test_settings_and_overrides_are_frozen_into_the_state() -> None:
    made = scene(settings=Settings(model="m", limits=Limits(turns=7)))
    made.run.overrides = {"model": "other", "max_turns": 3, "tools": []}
    update = await load(opening([], user("u")), made.run)
    frozen = Settings(model="other", limits=Limits(turns=3), tools=())
    assert made.run.settings == frozen
    assert Settings.from_json(update["settings"]) == frozen


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("overrides", "field"),
    [({"tools": ["nope"]}, "tools"), ({"max_turns": 0}, "limits.turns")],
)
async def test_an_override_that_cannot_be_is_refused(overrides: Any, field: str) -> None:
    made = scene()
    made.run.overrides = overrides
    assert kind(await load(opening([], user("u")), made.run)) == "refused"
    error = refusal(made)
    assert isinstance(error, ConfigurationError) and error.field == field


@pytest.mark.anyio
async def test_an_unknown_model_is_refused() -> None:
    def unknown(name: str) -> Any:
        raise UnknownModelError(name, "others")

    made = scene()
    object.__setattr__(made.run.dependencies, "resolve", unknown)
    update = await load(opening([], user("u")), made.run)
    assert update["decision"]["error"]["kind"] == "UnknownModelError"
    assert isinstance(refusal(made), UnknownModelError)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "override", "stored", "used"),
    [
        (None, None, "begun with", "begun with"),
        (None, None, "", ""),
        ("the agent's", None, "begun with", "the agent's"),
        ("", None, "begun with", ""),
        ("the agent's", "the run's", "begun with", "the run's"),
        (None, "the run's", "begun with", "the run's"),
    ],
)
async def test_the_run_s_prompt_wins_then_the_agent_s_then_the_thread_s(
    given: str | None, override: str | None, stored: str, used: str
) -> None:
    made = scene(system_prompt=given)
    made.run.overrides = {} if override is None else {"system_prompt": override}
    update = await load(opening([], user("u"), system_prompt=stored), made.run)
    assert update["system_prompt"] == used


# ---- repair


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("policy", "status", "mends"),
    [
        ("died", "running", True),
        ("died", "ended", False),
        ("always", "ended", True),
        ("off", "running", False),
    ],
)
async def test_a_transcript_is_mended_as_the_policy_says(
    policy: Any, status: str, mends: bool
) -> None:
    made = scene(settings=Settings(repair_policy=policy))
    before = opening(BROKEN, user("v"), run=record(id="last", status=status))
    update = await load(before, made.run)
    assert told(made.events)[:2] == ["agent_start", "repair" if mends else "turn_start"]
    if mends:
        assert not faults([*(made.run.rewritten or []), *made.run.appended])
    else:
        assert made.run.rewritten is None


@pytest.mark.anyio
async def test_a_run_after_a_death_names_the_dead_one() -> None:
    made = scene()
    before = opening([user("u")], user("v"), run=record(id="dead", status="running"))
    update = await load(before, made.run)
    assert made.events[0].resumed_from == "dead"  # type: ignore[union-attr]
    assert update["run"]["resumed_from"] == "dead"
    assert made.run.rewritten is None


@pytest.mark.anyio
async def test_a_result_that_a_dead_batch_kept_back_is_used() -> None:
    made = scene()
    held = {"results": [result("r2", "c2", "kept")], "extra": [], "terminate": False}
    before = opening(BROKEN, user("v"), run=record(status="running"), held=held)
    update = await load(before, made.run)
    assert outline(made.run.rewritten or [])[2:] == ["c1: ok", "c2: kept"]
    assert update["held"] is None


@pytest.mark.anyio
async def test_a_view_moves_with_a_mended_transcript() -> None:
    older: list[AnyMessage] = [user("o"), answer("p", "c0"), user("q")]
    view = View(head=[user("summary")], start=2, measured_from=3)
    before = opening(older, user("v"), run=record(status="running"), compaction=view)
    made = scene()
    update = await load(before, made.run)
    assert [m.id for m in made.run.rewritten or []] == ["o", "p", "tool-result-c0", "q"]
    assert update["view"]["start"] == 3


@pytest.mark.anyio
@pytest.mark.parametrize("failing", ["agent_start", "repair", "turn_start", "message_end"])
async def test_a_failure_while_a_dead_run_is_mended_is_mended_by_the_next(failing: str) -> None:
    made = rig(said("", ("c1", "t", {})), "fine")
    await made.run({"messages": "hi"}, interrupt_before=["tool_batch"])

    def fail(event: Any) -> None:
        remove()
        raise KeyError(failing)

    def once(event: Any) -> None:
        if event.type == failing:
            fail(event)

    remove = made.graph.dependencies.listeners.add(once)
    assert (await made.run({"messages": "again"})).reason == "fault"
    assert (await made.run({"messages": "now"})).status == "completed"
    ledger = await made.ledger()
    assert not faults(ledger)
    assert outline(ledger)[2] == f"c1: {INTERRUPTED}"


# ---- continuation


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
async def test_there_may_be_nothing_to_continue_from(
    messages: list[AnyMessage], says: str
) -> None:
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
