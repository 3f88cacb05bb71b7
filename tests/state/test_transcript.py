"""What keeps a list of messages from being a valid ledger, and that checking costs only the new."""

import pytest
from hypothesis import given
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from loopwright.state.transcript import Checker, Fault, faults
from tests.ledgers import answer, ledgers, result, unhurried, user


def kinds(messages: list[AnyMessage]) -> list[tuple[str, int]]:
    return [(fault.kind, fault.at) for fault in faults(messages)]


def test_a_ledger_with_every_call_answered_at_its_place_is_valid() -> None:
    ledger = [
        SystemMessage("be brief", id="s"),
        user("u1"),
        answer("a1", "c1", "c2", text="look"),
        result("r1", "c1"),
        result("r2", "c2", name=None),
        user("image"),
        answer("a2", "c3"),
        result("r3", "c3"),
        answer("a3", text="done"),
    ]
    assert faults(ledger) == []
    assert faults([]) == []


@pytest.mark.parametrize(
    ("ledger", "found"),
    [
        ([AIMessage("hi")], [("missing_message_id", 0)]),
        ([user("u"), answer("u", text="hi")], [("duplicate_message_id", 1)]),
        ([answer("a", " "), result("r", " ")], [("blank_call_id", 0)]),
        ([answer("a", "c", "c"), result("r", "c"), result("s", "c")], [("duplicate_call_id", 0)]),
        (
            [answer("a", "c"), result("r", "c"), answer("b", "c"), result("s", "c")],
            [("duplicate_call_id", 2)],
        ),
        ([answer("a", "c")], [("unanswered_call", 1)]),
        ([answer("a", "c", "d"), result("r", "c"), user("u")], [("unanswered_call", 2)]),
        (
            [answer("a", "c"), user("u"), result("r", "c")],
            [("unanswered_call", 1), ("misplaced_result", 2)],
        ),
        ([answer("a", "c", "d"), result("r", "d"), result("s", "c")], [("misplaced_result", 1)]),
        ([answer("a", "c"), result("r", "c"), result("s", "c")], [("duplicate_result", 2)]),
        ([user("u"), result("r", "c")], [("orphan_result", 1)]),
        ([result("r", "c"), answer("a", "c")], [("orphan_result", 0), ("unanswered_call", 2)]),
        ([answer("a", "c"), result("r", "c", name="other")], [("wrong_result_name", 1)]),
    ],
)
def test_each_fault_is_named_where_it_shows(
    ledger: list[AnyMessage], found: list[tuple[str, int]]
) -> None:
    assert kinds(ledger) == found


def test_broken_calls_need_a_result_too() -> None:
    broken = AIMessage("", id="a", invalid_tool_calls=[{"name": "t", "args": "{", "id": "c"}])
    assert kinds([broken]) == [("unanswered_call", 1)]
    assert faults([broken, result("r", "c")]) == []


def test_an_open_tail_is_valid_only_where_it_is_allowed() -> None:
    ledger = [user("u"), answer("a", "c", "d"), result("r", "c")]
    assert faults(ledger, open_tail=True) == []
    assert faults(ledger) == [Fault("unanswered_call", 3, "d")]


def test_the_checker_tells_only_what_the_new_message_shows() -> None:
    checker = Checker([user("u"), answer("a", "c", "d")])
    assert [call.id for call in checker.open_calls] == ["c", "d"]
    assert checker.add(result("r", "d")) == [Fault("misplaced_result", 2, "d")]
    assert checker.add(result("s", "c")) == []
    assert checker.open_calls == []
    assert checker.add(user("u")) == [Fault("duplicate_message_id", 4, "u")]


class CountingLedger(list[AnyMessage]):
    """Counts how many messages are read from it."""

    reads = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        for message in super().__iter__():
            self.reads += 1
            yield message


def test_the_checker_reads_each_message_once_however_long_the_ledger_grows() -> None:
    ledger = CountingLedger(user(f"u{n}") for n in range(500))
    checker = Checker(ledger)
    assert ledger.reads == 500
    for n in range(500):
        checker.add(answer(f"a{n}", text="hi"))
    assert ledger.reads == 500


@unhurried
@given(ledgers())
def test_checking_step_by_step_finds_what_checking_at_once_finds(
    ledger: list[AnyMessage],
) -> None:
    checker = Checker()
    found = [fault for message in ledger for fault in checker.add(message)]
    assert found + checker.close() == faults(ledger)
