"""What of a ledger is shown, how large it is taken to be, and where it may be cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.state.schema import View
from loopwright.state.transcript import faults
from loopwright.state.view import (
    estimated_tokens,
    exceeds_window,
    legal_cut,
    measure,
    moved,
    shown,
    summary_message,
    whole_ledger,
)
from tests.ledgers import answer, result, user

LEDGER: list[AnyMessage] = [user("u1"), answer("a1", "c1"), result("r1", "c1"), answer("a2")]


def view(head: list[AnyMessage], start: int, measured_from: int = 0) -> View:
    return View(head=head, start=start, measured_from=measured_from)


def counted(id: str, tokens: int) -> AIMessage:
    usage: Any = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return AIMessage("x" * 400, id=id, usage_metadata=usage)


def test_the_whole_ledger_is_shown_as_a_fresh_list() -> None:
    messages = shown(whole_ledger(), LEDGER)
    assert messages == LEDGER
    assert messages is not LEDGER


def test_the_head_stands_for_what_is_not_shown() -> None:
    summary = summary_message("all of it")
    assert shown(view([summary], 3), LEDGER) == [summary, LEDGER[3]]
    assert "all of it" in summary.text


def test_a_view_moves_with_the_message_that_it_begins_at() -> None:
    mended = [LEDGER[0], LEDGER[1], result("new", "c1"), LEDGER[3]]
    assert moved(view([], 3), LEDGER, [user("u0"), *mended]) == view([], 4, 5)


def test_a_view_behind_the_end_stays_behind_the_end() -> None:
    assert moved(view([], 4), LEDGER, LEDGER[:2]) == view([], 2, 2)


def test_a_view_whose_first_message_is_gone_shows_everything_again() -> None:
    assert moved(view([user("s")], 2), LEDGER, [LEDGER[0], LEDGER[3]]) == whole_ledger()


def test_a_reported_count_is_trusted_and_what_came_later_is_estimated() -> None:
    later = user("u", "y" * 400)
    assert estimated_tokens([user("u0"), counted("a", 70), later]) == 70 + 104
    assert estimated_tokens([later]) == 104


def test_counts_of_another_context_are_not_trusted() -> None:
    assert estimated_tokens([counted("a", 7000), user("u", "")], trusted_from=1) == 104 + 4


def test_a_measure_ignores_the_counts_from_before_the_view_was_made() -> None:
    ledger: list[AnyMessage] = [counted("a", 7000), counted("b", 7000), user("u", "")]
    assert measure(view([user("s", "")], 1, measured_from=2), ledger) == 4 + 104 + 4
    assert measure(view([user("s", "")], 1, measured_from=2), [*ledger, counted("c", 9)]) == 9


def test_the_window_is_exceeded_strictly_above_its_share() -> None:
    assert not exceeds_window(600, 1000, 0.6)
    assert exceeds_window(601, 1000, 0.6)


@pytest.mark.parametrize(
    ("keep", "cut"), [(1, 3), (2, 1), (3, 1), (4, 0), (9, 0)], ids=lambda value: str(value)
)
def test_a_cut_keeps_a_call_with_its_results(keep: int, cut: int) -> None:
    assert legal_cut(LEDGER, keep) == cut


@given(st.lists(st.sampled_from(["user", "answer", "calls"]), max_size=12), st.integers(1, 9))
def test_both_sides_of_a_cut_are_valid_ledgers(kinds: list[str], keep: int) -> None:
    ledger: list[AnyMessage] = []
    for n, kind in enumerate(kinds):
        ledger.append(user(f"u{n}") if kind == "user" else answer(f"a{n}"))
        if kind == "calls":
            ledger[-1] = answer(f"a{n}", f"c{n}", f"d{n}")
            ledger += [result(f"r{n}", f"c{n}"), result(f"s{n}", f"d{n}")]
    cut = legal_cut(ledger, keep)
    assert not faults(ledger[:cut])
    assert not faults(ledger[cut:])
    assert len(ledger) - cut >= min(keep, len(ledger))
    assert cut == 0 or not isinstance(ledger[cut], ToolMessage)
