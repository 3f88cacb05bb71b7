"""The node that ends a turn: what stops a run there, and what does not."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.errors import StateError
from loopwright.events import TurnEnd
from loopwright.hooks import Hooks, TurnContext
from loopwright.nodes.stop_hook import stop_hook
from loopwright.settings import Limits, Settings
from loopwright.state.schema import Decision
from tests.ledgers import answer, result, user
from tests.support.graphs import outline, rig, told
from tests.support.providers import said
from tests.support.states import record, scene, state

TURN: list[AnyMessage] = [user("u"), answer("a", "c1"), result("r", "c1")]
FAILED: list[AnyMessage] = [user("u"), said("half", ("c1", "t", {}), ("c2", "t", {}), stop="error")]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["again", "satisfied"])
async def test_without_a_rule_that_stops_the_decision_is_passed_on(kind: str) -> None:
    made = scene(messages=TURN)
    update = await stop_hook(state(TURN, kind), made.run)
    assert update == {"decision": {"kind": kind}}
    (end,) = made.events
    assert isinstance(end, TurnEnd)
    assert (end.message, end.tool_results) == (TURN[1], [TURN[2]])


@pytest.mark.anyio
@pytest.mark.parametrize("truthy", [True, "yes", 1, ["x"]])
@pytest.mark.parametrize("kind", ["again", "satisfied"])
async def test_a_truthy_answer_of_any_type_stops_the_run(truthy: Any, kind: str) -> None:
    seen: list[TurnContext] = []

    async def stop(turn: TurnContext) -> Any:
        seen.append(turn)
        return truthy

    made = scene(messages=TURN, hooks=Hooks(should_stop_after_turn=stop))
    update = await stop_hook(state(TURN, kind), made.run)
    assert update["decision"] == Decision(kind="stopped", reason="should_stop_after_turn")
    assert [m.id for m in seen[0].new_messages] == ["u", "a", "r"]
    assert told(made.events) == ["turn_end"]


@pytest.mark.anyio
@pytest.mark.parametrize("falsy", [None, False, 0, "", []])
async def test_a_falsy_answer_does_not(falsy: Any) -> None:
    made = scene(messages=TURN, hooks=Hooks(should_stop_after_turn=lambda turn: falsy))
    assert (await stop_hook(state(TURN, "again"), made.run))["decision"]["kind"] == "again"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("turn", "kind", "decided"),
    [(2, "again", "again"), (3, "again", "stopped"), (3, "satisfied", "satisfied")],
)
async def test_the_last_allowed_turn_stops_a_run_that_wants_another(
    turn: int, kind: str, decided: str
) -> None:
    made = scene(messages=TURN, settings=Settings(limits=Limits(turns=3)))
    update = await stop_hook(state(TURN, kind, run=record(turn=turn)), made.run)
    assert update["decision"]["kind"] == decided
    if decided == "stopped":
        assert update["decision"]["reason"] == "max_turns"


@pytest.mark.anyio
async def test_behind_a_failed_answer_no_hook_is_asked_and_its_calls_are_answered() -> None:
    made = scene(messages=FAILED, hooks=Hooks(should_stop_after_turn=lambda turn: 1 // 0))
    update = await stop_hook(state(FAILED, "hard_stop"), made.run)
    assert update == {"decision": {"kind": "hard_stop"}}
    assert [line[:16] for line in outline(made.run.appended)] == [
        "c1: Not executed",
        "c2: Not executed",
    ]
    assert told(made.events)[-1] == "turn_end"


@pytest.mark.anyio
async def test_the_policy_may_leave_the_calls_of_a_failed_answer_open() -> None:
    made = scene(messages=FAILED, settings=Settings(cancel_policy="leave"))
    await stop_hook(state(FAILED, "hard_stop"), made.run)
    assert told(made.events) == ["turn_end"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tail", "decided"), [(answer("new"), "satisfied"), (result("new", "c1"), "again")]
)
async def test_an_edited_transcript_decides_from_its_last_message(
    tail: AnyMessage, decided: str
) -> None:
    edited = state(TURN, "done")
    edited["messages"] = [*TURN, tail]
    update = await stop_hook(edited, scene(messages=TURN).run)
    assert update["decision"]["kind"] == decided


@pytest.mark.anyio
async def test_a_transcript_without_an_answer_has_no_turn_to_end() -> None:
    with pytest.raises(StateError):
        await stop_hook(state([], "satisfied"), scene().run)


@pytest.mark.anyio
async def test_should_stop_after_turn_ends_a_run_stopped_and_queues_keep_their_content() -> None:
    hooks = Hooks(should_stop_after_turn=lambda turn: True)
    made = rig(said("", ("c1", "t", {})), hooks=hooks)
    made.graph.dependencies.log.append("t", "follow_up", {})
    ended = await made.run({"messages": "hi"})
    assert (ended.status, ended.reason, ended.turns) == ("stopped", "should_stop_after_turn", 1)


@pytest.mark.anyio
async def test_max_turns_ends_a_run_with_status_limit() -> None:
    calls = [said("", (f"c{n}", "t", {})) for n in range(5)]
    made = rig(*calls, settings=Settings(limits=Limits(turns=3)))
    ended = await made.run({"messages": "hi"})
    assert (ended.status, ended.reason, ended.turns) == ("limit", "max_turns", 3)
    assert len(made.provider.requests) == 3
    assert outline(await made.ledger())[-1].startswith("c2: ")
