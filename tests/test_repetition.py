"""What counts as going round in circles: the fold over calls and results by itself."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.repetition import LONG_RUN, CallHistory, signature, timeless
from loopwright.settings import RepetitionPolicy
from loopwright.state.messages import Call
from tests.ledgers import unhurried

Row = tuple[str, Any, str]
"""A call's tool and arguments, and its result; one that begins with `!` is an error."""


def made(id: str, row: Row) -> AIMessage:
    return AIMessage("", tool_calls=[{"id": id, "name": row[0], "args": row[1]}])


def came(id: str, row: Row) -> ToolMessage:
    status = "error" if row[2].startswith("!") else "success"
    return ToolMessage(row[2], tool_call_id=id, status=status)


class Followed:
    """A history that took rows one by one; it stops before the first that is refused."""

    def __init__(
        self, rows: Iterable[Row], policy: RepetitionPolicy = "graded", exempt: str = ""
    ) -> None:
        self.history = CallHistory(policy, lambda name: name == exempt)
        self.warned: list[tuple[str, int]] = []
        self.refused: int | None = None
        for number, row in enumerate(rows, 1):
            id = f"c{number}"
            self.history.take(made(id, row))
            if self.history.refuses(Call(id, row[0], row[1])):
                self.refused = number
                return
            self.history.take(came(id, row))
            if self.history.warned is not None:
                self.warned.append((self.history.warned.circle, number))


A: Row = ("a", {"x": 1}, "one")
B: Row = ("b", {}, "two")
C: Row = ("c", {}, "three")


def test_the_same_call_with_the_same_result_is_warned_of_at_3_and_refused_at_5() -> None:
    followed = Followed([A] * 9)
    assert (followed.warned, followed.refused) == ([("same_call", 3)], 5)


def test_a_result_that_changes_begins_the_count_again() -> None:
    rows = [A, A, ("a", {"x": 1}, "other"), A, A, ("a", {"x": 1}, "another")]
    followed = Followed(rows)
    assert (followed.warned, followed.refused) == ([], None)


@pytest.mark.parametrize("cycle", [[A, B], [A, B, C], [A, A, B]])
def test_a_short_cycle_is_warned_of_in_round_3_and_refused_in_round_5(cycle: list[Row]) -> None:
    followed = Followed(cycle * 9)
    assert followed.warned == [("cycle", 3 * len(cycle))]
    assert followed.refused == 4 * len(cycle) + 1


def test_a_cycle_of_four_brings_nothing_new_before_its_third_round_is_over() -> None:
    followed = Followed([A, B, C, ("d", {}, "four")] * 9)
    assert (followed.warned, followed.refused) == ([("no_progress", 10)], 17)


def test_a_cycle_in_which_something_changes_goes_on() -> None:
    rows: list[Row] = []
    for n in range(12):
        rows += [A, ("b", {}, f"{n} left")]
    followed = Followed(rows)
    assert (followed.warned, followed.refused) == ([], None)


def test_one_failure_again_and_again_under_changing_arguments() -> None:
    followed = Followed([("a", {"x": n}, "!no such file") for n in range(20)])
    assert (followed.warned, followed.refused) == ([("same_error", 4)], 9)
    others = Followed([("a", {"x": n}, f"!no file {n}") for n in range(20)])
    assert (others.warned, others.refused) == ([], None)


def test_turns_that_bring_nothing_new_are_warned_of_and_end() -> None:
    known: list[Row] = [("read", {"n": n}, f"text {n}") for n in range(12)]
    again = [known[n] for n in (0, 5, 1, 7, 2, 9, 4, 11, 3, 8, 6, 10, 1, 9)]
    followed = Followed([*known, *again])
    assert (followed.warned, followed.refused) == ([("no_progress", 18)], 25)


def test_something_new_is_never_refused_however_idle_the_run_was() -> None:
    known: list[Row] = [("read", {"n": n}, f"text {n}") for n in range(12)]
    again = [known[n] for n in (0, 5, 1, 7, 2, 9, 4, 11, 3, 8, 6, 10)]
    assert Followed([*known, *again, ("read", {"n": 99}, "new")]).refused is None


def test_a_very_long_run_of_one_call_is_warned_of_once_and_never_ended() -> None:
    followed = Followed([("poll", {}, f"{n} %") for n in range(300)])
    assert (followed.warned, followed.refused) == ([("long_run", LONG_RUN)], None)


def test_a_tool_that_may_be_repeated_is_left_out() -> None:
    followed = Followed([A] * 300, exempt="a")
    assert (followed.warned, followed.refused) == ([], None)
    assert Followed([A, A], "first_repeat", exempt="a").refused is None


def test_a_repetition_that_was_left_and_began_again_is_warned_of_again() -> None:
    followed = Followed([A, A, A, A, B, C, A, A, A])
    assert followed.warned == [("same_call", 3), ("same_call", 9)]


def test_the_first_repeat_is_refused_wherever_it_stands() -> None:
    assert Followed([A, B, A], "first_repeat").refused == 3
    assert Followed([A, ("b", {"x": 1}, "")], "first_repeat").refused is None


def test_what_stands_behind_a_refused_call_of_its_message_is_refused_too() -> None:
    history = CallHistory("first_repeat", lambda name: False)
    calls = [("c1", "a"), ("c2", "b"), ("c3", "a"), ("c4", "c")]
    history.take(AIMessage("", tool_calls=[{"id": i, "name": n, "args": {}} for i, n in calls]))
    assert [history.refuses(Call(id, name, {})) for id, name in calls] == [False] * 2 + [True] * 2
    history.take(AIMessage("", tool_calls=[{"id": "c5", "name": "d", "args": {}}]))
    assert not history.refuses(Call("c5", "d", {}))


def test_a_batch_runs_in_order_if_its_own_results_decide() -> None:
    history = Followed([A, A]).history
    again = [Call(f"d{n}", "a", {"x": 1}) for n in range(3)]
    assert history.needs_order(again)
    assert not history.needs_order(again[:2])
    assert not history.needs_order([Call("d", "a", {"x": n}) for n in range(9)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 failed at 10:00:00", "2 failed at 10:00:01"),
        ("at 2026-01-31T09:05:01.250Z", "at 2026-02-01T10:00:00Z"),
        ("at 9:05 AM", "at 10:15 PM"),
        ("Sat, 31 Jan 2026 10:00:00 GMT", "Sun, 01 Feb 2026 11:00:00 GMT"),
        ("on January 31, 2026", "on February 1, 2026"),
        ("31.01.2026", "01.02.2026"),
        ("1769850000", "1769850099"),
    ],
)
def test_clock_times_and_dates_of_a_result_do_not_count(one: str, other: str) -> None:
    assert timeless(one) == timeless(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("items 1", "items 2"), ("2 failed", "3 failed"), ("v1.2.3", "v1.2.4"), ("May 3", "June")],
)
def test_other_numbers_of_a_result_do(one: str, other: str) -> None:
    assert timeless(one) != timeless(other)


def test_arguments_are_compared_as_json() -> None:
    one = Call("c", "a", {"x": 1, "y": [2]})
    assert signature(one) == signature(Call("d", "a", {"y": [2], "x": 1}))
    assert signature(one) == signature(Call("e", "a", '{ "y": [2],\n "x": 1 }', "broken"))
    assert signature(one) != signature(Call("f", "a", {"x": True, "y": [2]}))
    assert signature(Call("g", "a", "{", "broken")) == "a:{"


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([{}, {"x": 1}]), st.sampled_from(["1", "!2"])),
    max_size=40,
)


@unhurried
@given(ROWS)
def test_nothing_is_refused_without_a_warning_before(rows: list[Row]) -> None:
    followed = Followed(rows)
    if followed.refused is not None:
        assert followed.warned and followed.warned[0][1] < followed.refused


@unhurried
@given(ROWS, st.integers(0, 40))
def test_a_history_that_is_made_again_from_the_messages_goes_on_as_before(
    rows: list[Row], at: int
) -> None:
    messages: list[AnyMessage] = []
    for number, row in enumerate(rows[:at]):
        messages += [made(f"c{number}", row), came(f"c{number}", row)]
    one, other = (CallHistory("graded", lambda name: False) for _ in range(2))
    for message in messages:
        one.take(message)
        one.refuses(Call("asked", "a", {}))
    for message in messages:
        other.take(message)
    for row in rows[at:]:
        call = Call("c", row[0], row[1])
        for history in (one, other):
            history.take(made("c", row))
        assert one.refuses(call) == other.refuses(call)
        for history in (one, other):
            history.take(came("c", row))
        assert one.warned == other.warned
