"""The node at the end of all faults: one message stands for what failed, calls are answered."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.events import AgentEnd
from loopwright.nodes.fail import fail
from loopwright.settings import Settings
from loopwright.spending import usage_of
from loopwright.state.messages import error_of, stop_reason
from loopwright.state.repair import INTERRUPTED
from loopwright.state.schema import Decision
from loopwright.state.transcript import faults
from tests.ledgers import answer, result, user
from tests.support.graphs import outline, rig, told
from tests.support.providers import said
from tests.support.states import record, scene, state

ERROR = {"kind": "KeyError", "message": "boom"}
FAULT = Decision(kind="fault", error=ERROR)
OPEN: list[AnyMessage] = [user("u"), answer("a", "c1", "c2"), result("r", "c1")]


@pytest.mark.anyio
async def test_a_failure_is_one_message_and_the_end_lists_only_that() -> None:
    made = scene(messages=[user("u")])
    update = await fail(state([user("u")], decision=FAULT, run=record(turn=2)), made.run)
    (message,) = made.run.appended
    assert (error_of(message), stop_reason(message)) == (ERROR, "error")
    assert told(made.events) == [
        "message_start assistant",
        "message_end assistant",
        "turn_end",
        "agent_end",
    ]
    end = made.events[-1]
    assert isinstance(end, AgentEnd)
    assert (end.status, end.reason, end.error, end.turns) == ("failed", "fault", ERROR, 2)
    assert end.messages == [message]
    assert (update["decision"]["kind"], update["run"]["status"]) == ("done", "ended")
    assert update["result"]["error"] == ERROR


@pytest.mark.anyio
async def test_a_fault_after_an_abort_is_a_cancelled_run() -> None:
    made = scene(messages=[user("u")])
    made.run.signal.abort()
    update = await fail(state([user("u")], decision=FAULT), made.run)
    assert (update["result"]["status"], update["result"]["reason"]) == ("cancelled", "aborted")
    assert stop_reason(made.run.appended[0]) == "aborted"


@pytest.mark.anyio
async def test_calls_whose_result_is_not_known_may_have_taken_effect() -> None:
    made = scene(messages=OPEN)
    await fail(state(OPEN, decision=FAULT), made.run)
    assert outline(made.run.appended)[0] == f"c2: {INTERRUPTED}"
    assert not faults([*OPEN, *made.run.appended])


@pytest.mark.anyio
async def test_a_result_that_the_batch_kept_back_is_used() -> None:
    made = scene(messages=OPEN)
    held = {"results": [result("r2", "c2", "kept")], "extra": [], "terminate": False}
    await fail(state(OPEN, decision=FAULT, held=held), made.run)
    assert outline(made.run.appended)[0] == "c2: kept"


@pytest.mark.anyio
async def test_the_policy_may_leave_calls_open() -> None:
    made = scene(messages=OPEN, settings=Settings(cancel_policy="leave"))
    await fail(state(OPEN, decision=FAULT), made.run)
    assert len(made.run.appended) == 1


@pytest.mark.anyio
async def test_a_model_that_raises_ends_the_run_failed_and_the_user_s_message_is_kept() -> None:
    made = rig(said("", ("c1", "t", {})), RuntimeError("no route"), "fine")
    ended = await made.run({"messages": "hi"})
    assert (ended.status, ended.reason) == ("failed", "fault")
    assert ended.error == {"kind": "RuntimeError", "message": "no route"}
    assert outline(await made.ledger())[0] == "user: hi"
    assert (await made.run({"messages": "again"})).final_text == "fine"


@pytest.mark.anyio
async def test_usage_counts_what_was_answered_before_the_fault() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    counted = said("", ("c1", "t", {})).model_copy(update={"usage_metadata": usage})
    ended = await rig(counted, RuntimeError("boom")).run({"messages": "hi"})
    assert ended.usage == usage_of([counted])
    assert ended.usage["total_tokens"] == 3
