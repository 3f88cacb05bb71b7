"""What answers have used and cost, and their totals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.spending import Usage, added, cost_of, nothing, usage_of


def answer(given: int, made: int, cost: float | None = None, **about: Any) -> AIMessage:
    """An answer that counts tokens and has cost so much."""
    usage: Any = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    priced = {} if cost is None else {"cost": cost}
    return AIMessage("", usage_metadata=usage, response_metadata={**priced, **about})


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({}, None),
        ({"usage_metadata": {"cost": 0.25}}, 0.25),
        ({"response_metadata": {"usage": {"cost": 1}}}, 1.0),
        ({"response_metadata": {"token_usage": {"cost": 0.5}}}, 0.5),
        ({"response_metadata": {"cost": 0.75}}, 0.75),
        ({"response_metadata": {"cost": 0.75, "usage": {"cost": 0.25}}}, 0.25),
        ({"response_metadata": {"usage": {"cost": 0}}}, 0.0),
        ({"response_metadata": {"usage": {"cost": "0.5"}}}, None),
        ({"response_metadata": {"usage": {"cost": True}}}, None),
        ({"response_metadata": {"usage": {"cost": float("nan")}}}, None),
        ({"response_metadata": {"usage": {"cost": -3}}}, None),
        ({"response_metadata": {"usage": "free"}}, None),
    ],
)
def test_the_cost_of_an_answer_is_reported_or_was_found_in_the_table(
    fields: dict[str, Any], cost: float | None
) -> None:
    assert cost_of(AIMessage("").model_copy(update=fields)) == cost
    assert cost_of(HumanMessage("hi")) is None


def test_totals_have_every_kind_of_token() -> None:
    usage: Any = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": {"cache_read": 50, "cache_creation": 7},
        "output_token_details": {"reasoning": 8},
    }
    about = {"cost": 0.5, "estimated": True}
    message = AIMessage("", usage_metadata=usage, response_metadata=about)
    assert usage_of([message, HumanMessage("hi"), answer(1, 2, 0.25)]) == {
        "input_tokens": 101,
        "output_tokens": 22,
        "total_tokens": 123,
        "cached_tokens": 50,
        "cache_write_tokens": 7,
        "reasoning_tokens": 8,
        "cost": 0.75,
        "known_cost": 0.75,
        "estimated": True,
    }


def test_one_unknown_cost_makes_the_total_unknown_and_leaves_the_known_part() -> None:
    total = usage_of([answer(1, 1, 0.5), answer(1, 1), answer(1, 1, 0.25)])
    assert (total["cost"], total["known_cost"]) == (None, 0.75)
    assert usage_of([AIMessage("an answer that nobody counted")])["cost"] is None


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_an_answer_that_failed_without_counts_costs_nothing(reason: str) -> None:
    failed = AIMessage("", response_metadata={"stop_reason": reason})
    assert usage_of([answer(1, 1, 0.5), failed])["cost"] == 0.5
    assert usage_of([answer(1, 1, stop_reason=reason)])["cost"] is None


def test_totals_of_an_earlier_version_have_an_unknown_cost() -> None:
    old = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert added(nothing(), old) == {**nothing(), **old, "cost": None}
    assert added(nothing(), {}) == nothing()


ANSWERS: st.SearchStrategy[list[AnyMessage]] = st.lists(
    st.builds(answer, st.integers(0, 99), st.integers(0, 99), st.none() | st.integers(0, 9)),
    max_size=6,
)


@given(ANSWERS, ANSWERS)
def test_the_totals_of_two_parts_add_up_to_those_of_the_whole(
    one: list[AnyMessage], other: list[AnyMessage]
) -> None:
    whole: Usage = usage_of([*one, *other])
    assert added(usage_of(one), usage_of(other)) == whole == usage_of(other, usage_of(one))
