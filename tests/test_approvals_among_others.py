"""What may come together with an ask: other calls, tools that ask themselves, aborts, steering."""

from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Hooks
from loopwright.errors import ContinuationError
from loopwright.hooks import Ask, BeforeToolCall, ToolCallContext
from loopwright.state.transcript import faults
from tests.support.approving import BATCH, Desk, asked, calling, told_by
from tests.support.graphs import outline, told

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "threads.db")


async def test_blocked_and_unknown_calls_are_told_at_once_and_once_more_with_the_answers(
    desk: Desk,
) -> None:
    calls = [("c0", "missing", {}), *BATCH[:2], ("c4", "forbidden", {})]
    async with desk.agent(calling(*calls), "done") as agent:
        waiting, events = await told_by(agent.prompt("go"))
        ends = [line for line in told(events) if line.startswith("tool_execution_end")]
        assert (asked(waiting), ends) == (
            ["c1"],
            ["tool_execution_end c0", "tool_execution_end c4"],
        )
        assert (await agent.resume({"c1": "approve"})).status == "completed"
        assert sorted(desk.ran) == ["delete a", "look"]
        assert outline(agent.messages())[2:] == [
            "c0: Tool missing not found. Available tools: confirm, delete, forbidden, look",
            "c1: deleted a",
            "c2: seen",
            "c4: never",
            "assistant: done",
        ]
        assert not faults(agent.messages())
        # What has not been answered yet is prepared again: what the hook says may have changed.
        assert desk.looked_at == ["c1", "c2", "c4", "c1", "c2"]


MIXED: list[tuple[str, str, Any]] = [
    ("c1", "confirm", {"what": "one"}),
    ("c2", "delete", {"path": "a"}),
    ("c3", "look", {}),
    ("c4", "confirm", {"what": "secret"}),
    ("c5", "delete", {"path": "b"}),
]
ANSWERS = {
    "c2": "approve",
    "c4": {"decision": "edit", "arguments": {"what": "a secret"}},
    "c5": "reject",
}


@pytest.mark.parametrize("restarted", [False, True], ids=["one agent", "restarted"])
async def test_tools_that_ask_in_their_bodies_stand_beside_asks_and_free_ones(
    restarted: bool, desk: Desk
) -> None:
    agent = desk.agent(calling(*MIXED), "done")
    result = await agent.prompt("go")
    assert (asked(result), desk.ran) == (["c2", "c4", "c5"], [])
    others = ["delete a", "look"]
    for answer, waiting, ran in (
        (ANSWERS, [{"ask": "one"}], others),
        ("yes", [{"ask": "a secret"}], [*others, "confirm one"]),
        ("no", [], [*others, "confirm one", "confirm a secret"]),
    ):
        if restarted:
            await agent.aclose()
            agent = desk.agent("done")
        result = await agent.resume(answer)
        assert [interrupt["value"] for interrupt in result.interrupts] == waiting
        assert sorted(desk.ran) == sorted(ran)
    assert result.status == "completed"
    assert outline(agent.messages())[2:] == [
        "c1: one: yes",
        "c2: deleted a",
        "c3: seen",
        "c4: a secret: no",
        "c5: Rejected.",
        "assistant: done",
    ]
    assert not faults(agent.messages())
    await agent.aclose()


async def test_a_tool_that_is_alone_may_be_asked_about_and_then_ask_itself(desk: Desk) -> None:
    async with desk.agent(calling(MIXED[3]), "done") as agent:
        assert asked(await agent.prompt("go")) == ["c4"]
        result = await agent.resume({"c4": ANSWERS["c4"]})
        assert [waiting["value"] for waiting in result.interrupts] == [{"ask": "a secret"}]
        assert (await agent.resume("no")).status == "completed"
        assert desk.ran == ["confirm a secret"]
        assert outline(agent.messages())[2] == "c4: a secret: no"


async def test_an_abort_while_a_run_waits_for_answers_does_nothing(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH), "done") as agent:
        await agent.prompt("go")
        agent.abort()
        agent.request_abort()
        result = await agent.resume({"c1": "approve", "c3": "approve"})
        assert (result.status, len(desk.ran)) == ("completed", 3)


async def test_an_abort_while_a_batch_is_prepared_cancels_the_run_instead_of_asking(
    desk: Desk,
) -> None:
    def aborting(context: ToolCallContext) -> Ask | None:
        if context.call.id == "c2":
            agent.abort()
        return Ask() if context.call.id == "c1" else None

    async with desk.agent(calling(*BATCH), "never said", "fine") as agent:
        agent.hooks = Hooks(before_tool_call=aborting)
        result, events = await told_by(agent.prompt("go"))
        assert (result.status, desk.ran) == ("cancelled", [])
        assert "approval" not in told(events)
        assert outline(agent.messages())[2:5] == [f"c{n}: Operation aborted" for n in (1, 2, 3)]
        assert (await agent.prompt("again")).status == "completed"


async def test_an_abort_of_the_run_that_brings_the_answers_keeps_the_calls_from_running(
    desk: Desk,
) -> None:
    async with desk.agent(calling(*BATCH), "never said") as agent:
        await agent.prompt("go")

        def abort(event: Any) -> None:
            if event.type == "agent_start":
                agent.abort()

        agent.subscribe(abort)
        result = await agent.resume({"c1": "approve", "c3": "approve"})
        assert (result.status, desk.ran) == ("cancelled", [])
        assert outline(agent.messages())[2:5] == [f"c{n}: Operation aborted" for n in (1, 2, 3)]
        assert not faults(agent.messages())


async def test_what_is_queued_while_a_run_waits_is_delivered_once_behind_the_batch(
    desk: Desk,
) -> None:
    async with desk.agent(calling(*BATCH[:2]), "done", "and that") as agent:
        await agent.prompt("go")
        agent.steer("be quick")
        agent.follow_up("then stop")
        assert outline(agent.queued("steering")) == ["user: be quick"]
        assert (await agent.resume("approve")).status == "completed"
        assert outline(agent.messages())[2:] == [
            "c1: deleted a",
            "c2: seen",
            "user: be quick",
            "assistant: done",
            "user: then stop",
            "assistant: and that",
        ]
        assert agent.queued("steering") == agent.queued("follow_up") == []


@pytest.mark.parametrize("answers", [None, {"c1": "approve"}, "approve"])
async def test_where_nothing_waits_there_is_nothing_to_resume(answers: Any, desk: Desk) -> None:
    async with desk.agent("one", "two") as agent:
        with pytest.raises(ContinuationError, match="nothing to resume: send a prompt") as refused:
            await agent.resume(answers)
        assert refused.value.thread == "t"
        await agent.prompt("hi")
        with pytest.raises(ContinuationError, match="nothing to resume"):
            await agent.resume(answers)
        assert outline(agent.messages()) == ["user: hi", "assistant: one"]
        assert (await agent.prompt("again")).status == "completed"


async def test_a_hook_that_asks_no_longer_takes_no_answer_back(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH), "done") as agent:
        await agent.prompt("go")
        agent.hooks = Hooks()
        assert asked(await agent.resume()) == ["c1", "c3"]
        assert (await agent.resume({"c1": "reject", "c3": "approve"})).status == "completed"
        assert sorted(desk.ran) == ["delete b", "look"]


async def test_a_hook_that_blocks_by_now_wins_over_an_approval(desk: Desk) -> None:
    def strict(context: ToolCallContext) -> BeforeToolCall:
        return BeforeToolCall(block=context.call.id == "c1", reason="not any more")

    async with desk.agent(calling(*BATCH), "done") as agent:
        await agent.prompt("go")
        agent.hooks = Hooks(before_tool_call=strict)
        assert (await agent.resume({"c1": "approve", "c3": "reject"})).status == "completed"
        assert desk.ran == ["look"]
        expected = ["c1: not any more", "c2: seen", "c3: Rejected."]
        assert outline(agent.messages())[2:5] == expected


async def test_two_threads_wait_for_answers_of_their_own(desk: Desk) -> None:
    async with desk.agent(calling(*BATCH[:2]), calling(*BATCH[1:]), "done", "done") as agent:
        await agent.prompt("go")
        await agent.prompt("go", thread="other")
        assert (await agent.resume("approve", thread="other")).status == "completed"
        assert _ran(agent, "other") == ["c2: seen", "c3: deleted b"]
        assert (await agent.resume("reject")).status == "completed"
        assert _ran(agent, "t") == ["c1: Rejected.", "c2: seen"]
        assert sorted(desk.ran) == ["delete b", "look", "look"]


def _ran(agent: Agent, thread: str) -> list[str]:
    return outline(agent.messages(thread))[2:4]
