"""The guard: faults keep what was appended, interrupts pass, events are numbered without gaps."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime

from loopwright.errors import StateError
from loopwright.events import AgentEnd, AnyEvent
from loopwright.graph.guard import RUN_KEY, Step, guarded, unguarded
from loopwright.hooks import Hooks
from loopwright.runs import Run, Update
from loopwright.state.schema import AgentState, Decision
from loopwright.state.transcript import faults
from tests.ledgers import user
from tests.support.graphs import on, outline, rig, told
from tests.support.providers import said
from tests.support.states import record, scene, state


async def called(step: Step, run: Run, before: AgentState, wrap: Any = guarded) -> dict[str, Any]:
    """What a node over this step writes."""
    written: dict[str, Any] = await wrap(step)(
        before, {"configurable": {RUN_KEY: run}}, Runtime(context=None)
    )
    return written


def raising(error: BaseException) -> Step:
    async def step(state: AgentState, run: Run) -> Update:
        await run.append(HumanMessage("said before", id="kept"))
        raise error

    return step


@pytest.mark.anyio
async def test_a_step_that_raises_becomes_a_fault_and_keeps_what_it_appended() -> None:
    written = await called(raising(KeyError("no")), scene().run, state([user("u")]))
    assert [m.id for m in written["messages"]] == ["kept"]
    assert written["decision"] == {
        "kind": "fault",
        "about": "kept",
        "error": {"kind": "KeyError", "message": "'no'"},
    }


@pytest.mark.anyio
async def test_an_exception_without_a_text_is_named() -> None:
    written = await called(raising(ValueError()), scene().run, state())
    assert written["decision"]["error"] == {"kind": "ValueError", "message": "ValueError"}


@pytest.mark.anyio
@pytest.mark.parametrize("error", [GraphInterrupt(), asyncio.CancelledError()], ids=repr)
async def test_interrupts_and_cancellations_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await called(raising(error), scene().run, state())


@pytest.mark.anyio
async def test_what_the_last_node_raises_reaches_the_caller() -> None:
    with pytest.raises(KeyError):
        await called(raising(KeyError()), scene().run, state(), wrap=unguarded)


@pytest.mark.anyio
async def test_a_decision_is_about_the_last_message_of_the_ledger() -> None:
    async def idle(state: AgentState, run: Run) -> Update:
        return {"decision": Decision(kind="idle")}

    for messages, about in (([user("u"), user("v")], "v"), ([], None)):
        written = await called(idle, scene().run, state(messages))
        assert written["decision"] == {"kind": "idle", "about": about}
        assert "messages" not in written


@pytest.mark.anyio
async def test_a_rewritten_ledger_keeps_what_was_appended_behind_it() -> None:
    async def rewrite(state: AgentState, run: Run) -> Update:
        run.rewritten = [user("mended")]
        await run.append(user("new"))
        return {"decision": Decision(kind="opening")}

    written = await called(rewrite, scene().run, state([user("broken")]))
    assert [m.id for m in written["messages"].value] == ["mended", "new"]


@pytest.mark.anyio
async def test_a_refusal_leaves_the_record_of_the_last_run() -> None:
    async def refuse(state: AgentState, run: Run) -> Update:
        return {"decision": Decision(kind="refused")}

    run = scene().run
    assert "run" not in await called(refuse, run, state(run=record(id="last")))
    assert run.settled


@pytest.mark.anyio
async def test_a_node_without_its_run_says_who_left_the_entrance_out() -> None:
    node: Callable[..., Any] = guarded(raising(KeyError()))
    with pytest.raises(StateError, match="around its entrance"):
        await node(state(), {"configurable": {}}, Runtime(context=None))


def fail(*given: Any) -> Any:
    raise ZeroDivisionError


FAULTS = {
    "transform_context": Hooks(transform_context=fail),
    "convert_to_llm": Hooks(convert_to_llm=fail),
    "get_api_key": Hooks(get_api_key=fail),
    "should_stop_after_turn": Hooks(should_stop_after_turn=fail),
    "prepare_next_turn": Hooks(prepare_next_turn=fail),
}


@pytest.mark.anyio
@pytest.mark.parametrize("hooks", FAULTS.values(), ids=FAULTS)
async def test_a_hook_that_raises_ends_the_run_failed_with_reason_fault(hooks: Hooks) -> None:
    made = rig(said("", ("c1", "t", {})), "never asked for", hooks=hooks)
    events = await made.events({"messages": "hi"})
    end = events[-1]
    assert isinstance(end, AgentEnd)
    assert (end.status, end.reason) == ("failed", "fault")
    assert end.error is not None and end.error["kind"] == "ZeroDivisionError"
    assert [m.id for m in end.messages] == [(await made.ledger())[-1].id]
    assert [event.sequence for event in events] == list(range(len(events)))
    assert not faults(await made.ledger())


@pytest.mark.anyio
async def test_the_run_after_a_fault_works_and_sees_what_was_said() -> None:
    made = rig(RuntimeError("boom"), "hello again")
    await made.run({"messages": "hi"})
    assert (await made.run({"messages": "again"})).final_text == "hello again"
    assert outline(made.provider.requests[-1].messages) == [
        "user: hi",
        "assistant: ",
        "user: again",
    ]


@pytest.mark.anyio
async def test_numbers_have_no_gaps_whatever_goes_wrong_at_any_event() -> None:
    whole = await rig(said("", ("c1", "t", {})), "done").events({"messages": "hi"})
    for at in range(len(whole)):
        made = rig(said("", ("c1", "t", {})), "done")
        heard: list[AnyEvent] = []

        def fail_once(event: AnyEvent, at: int = at, heard: Any = heard) -> None:
            heard.append(event)
            if len(heard) == at + 1:
                raise KeyError("once")

        remove = made.graph.dependencies.listeners.add(fail_once)
        events = await made.events({"messages": "hi"})
        assert [event.sequence for event in events] == list(range(len(events))), at
        assert told(events)[-1] == "agent_end", at
        assert heard == events
        remove()
        made.provider.script[:] = ["fine"]
        assert (await made.run({"messages": "next"})).status == "completed", at
        assert not faults(await made.ledger()), at


@pytest.mark.anyio
async def test_a_failure_of_the_failing_reaches_the_caller_and_the_next_run_mends() -> None:
    made = rig(said("I look.", ("c1", "t", {}), ("c2", "t", {})), "fine")

    def broken(event: AnyEvent) -> None:
        if event.type == "tool_execution_end":
            raise KeyError("first")
        if event.type == "message_start" and event.message.type == "tool":
            raise LookupError("second")

    remove = made.graph.dependencies.listeners.add(broken)
    with pytest.raises(LookupError, match="second"):
        await made.events({"messages": "hi"})
    remove()
    state_of = await made.graph.aget_state(on("t"))
    assert outline(state_of.values["messages"]) == ["user: hi", "assistant: I look. [c1 c2]"]
    died = state_of.values["run"]["id"]

    events = await made.events({"messages": "next"})
    assert told(events)[:3] == ["agent_start", "repair", "turn_start"]
    assert events[0].resumed_from == died  # type: ignore[union-attr]
    assert events[1].report["synthesized"] == 2  # type: ignore[union-attr]
    assert not faults(await made.ledger())
