"""Answers that say nothing or were cut off: asked for again, bounded, told in the result."""

from typing import Any

import pytest

from loopwright import Agent, Limits, RunResult, Settings
from loopwright.state.notes import rule_of
from loopwright.testing import Response, ScriptedModel
from loopwright.unfinished import CUT, EMPTY

pytestmark = pytest.mark.anyio

CUT_TEXT = Response(text="part ", stop="length")
CUT_CALL = Response(calls=[("c1", "write", '{"text": "ha')], stop="length")
EMPTY_STOP = Response()


def write(text: str) -> str:
    """Write."""
    raise AssertionError("a cut call ran")


async def run(model: ScriptedModel, **settings: Any) -> RunResult:
    async with Agent(model, [write], settings=Settings(**settings)) as agent:
        return await agent.prompt("Go.")


def rules(result: RunResult) -> list[str]:
    return [rule for m in result.messages if (rule := rule_of(m)) is not None]


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    model = ScriptedModel([EMPTY_STOP, "Here."])
    result = await run(model)
    assert (result.final_text, result.status, rules(result)) == ("Here.", "completed", [EMPTY])
    assert "[System note] Your last answer was empty" in str(model.requests[1].messages[-1].content)


async def test_a_second_empty_answer_of_a_run_ends_it_with_a_text_that_says_so() -> None:
    model = ScriptedModel([EMPTY_STOP] * 9)
    result = await run(model)
    assert len(model.requests) == 2
    assert result.final_text == "(The model ended without an answer.)"
    assert result.status == "completed"


@pytest.mark.parametrize(
    ("policy", "text"), [("note", "(The model ended without an answer.)"), ("keep", "")]
)
async def test_a_policy_may_leave_an_empty_answer_alone(policy: str, text: str) -> None:
    model = ScriptedModel([EMPTY_STOP] * 9)
    result = await run(model, empty_answers=policy)
    assert (len(model.requests), result.final_text) == (1, text)


async def test_no_answer_is_asked_for_where_the_turn_limit_leaves_no_room() -> None:
    model = ScriptedModel([EMPTY_STOP] * 9)
    result = await run(model, limits=Limits(turns=1))
    assert (len(model.requests), result.status) == (1, "completed")
    assert result.final_text


async def test_a_withheld_answer_is_not_asked_for_again_and_is_visible() -> None:
    model = ScriptedModel([Response(stop="content_filter")])
    result = await run(model)
    assert result.filtered and result.final_text == (
        "(The answer was withheld by the provider: content_filter.)"
    )


async def test_a_steering_message_takes_the_place_of_the_note() -> None:
    model = ScriptedModel([EMPTY_STOP, "Here."])
    async with Agent(model, settings=Settings()) as agent:
        agent.steer("More.")
        agent.steer("And more.")
        result = await agent.prompt("Go.")
    assert (result.final_text, rules(result)) == ("Here.", [])


async def test_a_cut_text_is_continued_and_given_in_one_piece() -> None:
    model = ScriptedModel([CUT_TEXT, CUT_TEXT, "end"])
    result = await run(model)
    assert (result.final_text, result.truncated) == ("part part end", False)
    assert rules(result) == [CUT, CUT]


@pytest.mark.parametrize(("rounds", "requests"), [(0, 1), (1, 2), (3, 4), (None, 1)])
async def test_a_text_that_is_always_cut_is_continued_within_bounds(
    rounds: int | None, requests: int
) -> None:
    model = ScriptedModel([CUT_TEXT] * 9)
    result = await run(model, limits=Limits(length_rounds=rounds))
    assert (len(model.requests), result.status) == (requests, "completed")
    assert result.truncated and result.final_text == "part " * requests


async def test_a_run_whose_calls_are_always_cut_ends_with_a_clear_message() -> None:
    model = ScriptedModel([CUT_CALL] * 9)
    result = await run(model)
    assert (len(model.requests), result.status, result.reason) == (4, "failed", "output_limit")
    assert (
        result.error is not None
        and "output limit of the model stops this" in result.error["message"]
    )
    assert result.truncated


async def test_cuts_count_in_a_row_only() -> None:
    model = ScriptedModel([CUT_CALL, CUT_CALL, CUT_CALL, "whole"])
    assert (await run(model)).final_text == "whole"


async def test_thinking_that_used_up_the_output_says_so() -> None:
    model = ScriptedModel([Response(thinking="hm", stop="length")] * 9)
    result = await run(model)
    assert len(model.requests) == 4 and result.truncated
    assert "output limit was reached" in result.final_text
