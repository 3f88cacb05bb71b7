"""The limits of a run: when each ends it, what it is told by, and the last answer (S3-08)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from loopwright.errors import ConfigurationError, InputError
from loopwright.events import AnyEvent, Budget
from loopwright.settings import Limits, Settings
from loopwright.testing import VirtualClock
from tests.ledgers import unhurried
from tests.support.graphs import Rig, outcome, outline, rig, told
from tests.support.providers import said

CALL = said("", ("c1", "look", {}))
HI: Any = {"messages": "hi"}


def look() -> str:
    """Look."""
    return "seen"


def looking(calls: int, /, **limits: Any) -> Rig:
    """A graph whose model calls a tool this many times and then answers."""
    settings = Settings(repeatable=("look",), limits=Limits(**limits))
    return rig(*[CALL] * calls, "done", tools=[look], settings=settings)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "value"), [("max_turns", 1), ("max_tokens", 1), ("max_cost", 0.1)]
)
async def test_a_limit_may_be_set_for_one_run(name: str, value: float) -> None:
    answer = CALL.model_copy(
        update={
            "usage_metadata": {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1},
            "response_metadata": {"usage": {"cost": 0.1}},
        }
    )
    made = rig(answer, "done", tools=[look], settings=Settings(limits=Limits(chunks=100)))
    result = await made.run(HI, context={name: value})
    assert (result.status, result.reason, result.turns) == ("limit", name, 1)
    state = await made.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert state.values["settings"]["limits"]["chunks"] == 100


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_turns", True),
        ("max_turns", "3"),
        ("max_seconds", float("nan")),
        ("max_seconds", float("inf")),
        ("max_tokens", 1.5),
        ("max_cost", -1),
    ],
)
async def test_a_wrong_limit_for_one_run_is_refused_before_it_begins(name: str, value: Any) -> None:
    made = looking(1)
    with pytest.raises(ConfigurationError, match=r"limits.*: use a") as refused:
        await made.events(HI, context={name: value})
    assert refused.value.field == name.replace("max_", "limits.")
    assert not made.provider.requests


@pytest.mark.anyio
async def test_the_time_of_a_run_is_that_of_its_clock_and_begins_with_it() -> None:
    clock = VirtualClock(start=1000)

    def wait() -> str:
        """Wait for two seconds."""
        clock.advance(2)
        return "waited"

    calls = [said("", ("c1", "wait", {}))] * 6
    settings = Settings(limits=Limits(seconds=5))
    made = rig(*calls, tools=[wait], settings=settings, clock=clock)
    for _ in range(2):
        result = await made.run(HI)
        assert (result.status, result.reason, result.turns) == ("limit", "max_seconds", 3)


@pytest.mark.anyio
async def test_a_run_that_has_its_answer_is_completed_whatever_it_has_used() -> None:
    answer = said("done").model_copy(
        update={"usage_metadata": {"input_tokens": 9, "output_tokens": 0, "total_tokens": 9}}
    )
    result = await rig(answer, settings=Settings(limits=Limits(tokens=1))).run(HI)
    assert (result.status, result.reason) == ("completed", "answered")


@pytest.mark.anyio
async def test_the_tokens_of_earlier_runs_do_not_count() -> None:
    answer = said("done").model_copy(
        update={"usage_metadata": {"input_tokens": 9, "output_tokens": 0, "total_tokens": 9}}
    )
    made = rig(answer, CALL, "done", tools=[look], settings=Settings(limits=Limits(tokens=5)))
    await made.run(HI)
    assert (await made.run(HI)).status == "completed"


@pytest.mark.anyio
async def test_a_last_answer_is_counted_announced_and_without_tools() -> None:
    made = looking(2, turns=2, last_answer=True)
    events = await made.events(HI)
    result = outcome(events)
    assert (result.status, result.reason, result.turns) == ("limit", "max_turns", 3)
    assert result.final_text == "done"
    assert budgets(events) == [Budget(name="turns", left=0)]
    assert told(events).count("turn_start") == told(events).count("turn_end") == 3
    assert [len(request.tools) for request in made.provider.requests] == [1, 1, 0]
    said_to_model = made.provider.requests[-1].messages[-1]
    assert isinstance(said_to_model, HumanMessage)
    assert "turn limit" in said_to_model.text
    assert outline(await made.ledger())[-1] == "assistant: done"
    assert [m.type for m in await made.ledger()].count("human") == 1


def budgets(events: list[AnyEvent]) -> list[Budget]:
    found = [event for event in events if isinstance(event, Budget)]
    return [replace(event, run_id="", sequence=-1) for event in found]


@pytest.mark.anyio
async def test_calls_in_a_last_answer_are_not_run_and_end_the_run() -> None:
    made = looking(4, turns=1, last_answer=True)
    result = await made.run(HI)
    assert (result.status, result.reason, result.turns) == ("limit", "max_turns", 2)
    assert len(made.provider.requests) == 2
    assert "not found" in outline(await made.ledger())[-1]


@pytest.mark.anyio
async def test_a_run_that_ends_by_itself_is_given_no_last_answer() -> None:
    made = looking(1, turns=2, last_answer=True)
    result = await made.run(HI)
    assert (result.status, result.turns, len(made.provider.requests)) == ("completed", 2, 2)


@pytest.mark.anyio
async def test_the_tools_are_back_in_the_next_run() -> None:
    made = looking(2, turns=2, last_answer=True)
    await made.run(HI)
    made.provider.script = ["again"]
    await made.run(HI)
    assert len(made.provider.requests[-1].tools) == 1


@pytest.mark.anyio
async def test_a_run_begins_with_no_more_messages_than_allowed() -> None:
    made = rig("a", "b", settings=Settings(limits=Limits(initial_messages=2)))
    await made.run(HI)
    with pytest.raises(InputError, match=r"begin with 3 messages: at most 2"):
        await made.run(HI)
    assert len(await made.ledger()) == 2


@pytest.mark.anyio
async def test_requests_are_numbered_by_turn_behind_the_offset() -> None:
    made = rig(CALL, "done", tools=[look], settings=Settings(request_offset=9))
    await made.run(HI)
    assert [request.id for request in made.provider.requests] == ["request-010", "request-011"]


@pytest.mark.anyio
async def test_a_result_is_cut_to_its_limit_in_the_event_and_in_the_transcript() -> None:
    def tell() -> str:
        """Tell a lot."""
        return "x" * 1000

    settings = Settings(limits=Limits(result_characters=100))
    made = rig(said("", ("c1", "tell", {})), "done", tools=[tell], settings=settings)
    events = await made.events(HI)
    (end,) = [event for event in events if event.type == "tool_execution_end"]
    result = (await made.ledger())[2]
    assert len(end.content) == len(result.text) == 100
    assert result.text.endswith("cut off here]")


@pytest.mark.anyio
async def test_arguments_beyond_their_bounds_are_told_to_the_model() -> None:
    call = said("", ("c1", "look", {"x": [[[]]]}))
    made = rig(call, "done", tools=[look], settings=Settings(limits=Limits(argument_depth=2)))
    result = await made.run(HI)
    assert result.status == "completed"
    assert "more than 2 containers" in (await made.ledger())[2].text


@unhurried
@given(turns=st.integers(1, 6), limit=st.integers(1, 6), last=st.booleans())
@pytest.mark.anyio
async def test_a_run_makes_no_more_requests_than_its_turns_and_the_last_answer(
    turns: int, limit: int, last: bool
) -> None:
    made = looking(turns, turns=limit, last_answer=last)
    result = await made.run(HI)
    assert len(made.provider.requests) == result.turns <= limit + last
    assert result.status == ("completed" if turns < limit else "limit")
