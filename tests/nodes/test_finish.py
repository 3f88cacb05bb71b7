"""The node that ends a run in good order: which rule it was, and what is told and stored."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.events import AgentEnd
from loopwright.nodes.finish import finish, verdict
from loopwright.spending import usage_of
from loopwright.state.messages import failure
from loopwright.state.schema import Decision
from tests.ledgers import answer, result, user
from tests.support.graphs import rig
from tests.support.providers import said
from tests.support.states import record, scene, state

U = user("u")
CANCELLED = failure("stop", kind="aborted", reason="aborted", model="m")
FAILED = failure("no", kind="server_error", reason="error", model="m")
CALLED = answer("a", "c1")


@pytest.mark.parametrize(
    ("decision", "messages", "expected"),
    [
        (Decision(kind="idle"), [U, answer("a")], ("completed", "answered")),
        (Decision(kind="idle"), [U, CALLED, result("r", "c1")], ("completed", "terminated")),
        (
            Decision(kind="idle"),
            [U, CALLED, result("r", "c1"), user("image")],
            ("completed", "terminated"),
        ),
        (Decision(kind="hard_stop"), [U, FAILED], ("failed", "model_error")),
        (Decision(kind="hard_stop"), [U, CANCELLED], ("cancelled", "aborted")),
        (
            Decision(kind="hard_stop"),
            [U, said("", ("c1", "t", {}), stop="aborted"), result("r", "c1")],
            ("cancelled", "aborted"),
        ),
        (
            Decision(kind="stopped", reason="should_stop_after_turn"),
            [U, answer("a")],
            ("stopped", "should_stop_after_turn"),
        ),
        (Decision(kind="stopped", reason="max_turns"), [U, CALLED], ("limit", "max_turns")),
        (Decision(kind="stopped", reason="context_overflow"), [U], ("failed", "context_overflow")),
    ],
)
def test_each_rule_has_a_status_and_a_reason(
    decision: Decision, messages: list[AnyMessage], expected: tuple[str, str]
) -> None:
    assert verdict(decision, messages) == expected


@pytest.mark.anyio
async def test_the_end_tells_what_this_run_produced_and_is_stored_without_it() -> None:
    made = scene()
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    old, new = (
        answer("old"),
        answer("new", text="done").model_copy(update={"usage_metadata": usage}),
    )
    used = usage_of([new])
    before = state([user("u"), old, user("v"), new], "idle", run=record(first=2, turn=4))
    update = await finish(before, made.run)
    (end,) = made.events
    assert isinstance(end, AgentEnd)
    assert [m.id for m in end.messages] == ["v", "new"]
    assert (end.status, end.reason, end.turns, end.usage) == ("completed", "answered", 4, used)
    assert (end.thread, end.error) == ("t", None)
    assert update["decision"]["kind"] == "done"
    assert update["run"]["status"] == "ended"
    assert update["result"] == {
        "status": "completed",
        "reason": "answered",
        "final_text": "done",
        "usage": used,
        "turns": 4,
        "thread": "t",
        "run_id": made.run.id,
        "error": None,
        "truncated": False,
        "filtered": False,
        "output": None,
    }


@pytest.mark.anyio
async def test_a_failed_run_says_how_it_failed() -> None:
    update = await finish(state([U, FAILED], "hard_stop"), scene().run)
    assert update["result"]["error"] == {"kind": "server_error", "message": "no"}


@pytest.mark.anyio
async def test_an_earlier_failure_is_not_this_run_s() -> None:
    decision = Decision(kind="stopped", reason="context_overflow")
    before = state([U, FAILED, user("v")], decision=decision)
    update = await finish(before, scene().run)
    assert update["result"]["error"]["kind"] == "context_overflow"


@pytest.mark.anyio
async def test_answered_ends_a_run_completed() -> None:
    ended = await rig("hello").run({"messages": "hi"})
    assert (ended.status, ended.reason, ended.final_text) == ("completed", "answered", "hello")
    assert ended.error is None


@pytest.mark.anyio
async def test_a_listener_that_fails_at_the_end_makes_the_run_failed() -> None:
    made = rig("hello")

    def fail(event: Any) -> None:
        if event.type == "agent_end" and event.status == "completed":
            raise KeyError("at the end")

    made.graph.dependencies.listeners.add(fail)
    events = await made.events({"messages": "hi"})
    ends = [event for event in events if isinstance(event, AgentEnd)]
    assert [(end.status, end.reason) for end in ends] == [
        ("completed", "answered"),
        ("failed", "fault"),
    ]
    assert events[-1] is ends[-1]
