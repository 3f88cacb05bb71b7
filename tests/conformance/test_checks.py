"""Each key of `expect` has a check that passes and that can fail."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.providers.wire import api_messages
from loopwright.state.messages import Call
from loopwright.state.repair import RepairReport, interrupted
from tests.conformance import checks
from tests.conformance.checks import PEOPLE, TRANSCRIPT, Outcome, unmet
from tests.conformance.kinds.recursion import RECURSION
from tests.conformance.kinds.recursion import Outcome as RunOutcome
from tests.conformance.loading import Loaded
from tests.ledgers import answer, result, user


def outcome(after: list[AnyMessage], before: list[AnyMessage] | None = None) -> Outcome:
    """A transcript that loading made `after` of, in one load and for good."""
    report = RepairReport(moved=int(before is not None)).counts()
    loaded = Loaded(after, api_messages(after, ""), report)
    return Outcome(before or after, loaded, Loaded(after, [], RepairReport().counts()))


MENDED = outcome(
    [
        user("u1"),
        answer("a1", "c1", "c2"),
        result("t1", "c1"),
        interrupted(Call("c2", "t", {})),
        answer("a2", "c3"),
        user("u2"),
    ],
    [user("u1"), answer("a1", "c1", "c2"), result("t1", "c1"), result("t9", "zz"), user("u2")],
)
ROWS: list[dict[str, Any]] = [
    {"role": "user", "id": "u1", "content": "hi"},
    {"role": "assistant", "id": "a1", "calls": ["c1", "c2"], "content": None},
    {"role": "tool", "id": "t1", "for": "c1"},
    {"role": "tool", "for": "c2", "synthetic": True},
    {"role": "assistant", "id": "a2", "calls": ["c3"]},
    {"role": "user", "id": "u2"},
]


@pytest.mark.parametrize(
    ("key", "met", "not_met"),
    [
        ("messages", ROWS, ROWS[:-1]),
        ("messages", ROWS, [*ROWS[:3], {"role": "tool", "for": "c2"}, *ROWS[4:]]),
        ("messages", ROWS, [*ROWS[:4], {"role": "assistant", "id": "a2", "calls": []}, ROWS[5]]),
        ("messages", ROWS, [{"role": "user", "id": "u1", "content": "ho"}, *ROWS[1:]]),
        ("messages", ROWS, [*ROWS[:5], {"role": "assistant", "id": "u2"}]),
        ("unchanged", False, True),
        ("idempotent", True, False),
        ("each_call_answered_once", ["c1", "c2"], ["c1", "c3"]),
        ("each_call_answered_once", ["c1"], True),
        ("kept", ["u1", "t1"], ["t9"]),
        ("kept_any_of", ["t1", "t9"], ["t9"]),
        ("dropped", ["t9"], []),
        ("lost", ["t9"], ["t1"]),
        ("not_lost", ["t1"], ["t9"]),
        ("synthetic_for", ["c2"], ["c1", "c2"]),
        ("synthetic_results", 1, 2),
        ("synthetic_results", ["c2"], []),
        ("synthetic_after", "a1", "a2"),
        ("results_adjacent_to", "a1", "a2"),
        ("call_messages_with_c1", 1, 2),
        ("pairs", [["a1", "t1"]], [["a2", "t1"]]),
        ("order", ["u1", "a1", "u2"], ["u2", "u1"]),
        ("order_any_of", [["u2", "u1"], ["u1", "u2"]], [["u2", "u1"]]),
        ("open_calls", ["c3"], []),
        ("any_of", [{"kept": ["t9"]}, {"kept": ["t1"]}], [{"kept": ["t9"]}]),
        ("wire_call_ids_unique_within_message", True, False),
    ],
)
def test_a_key_about_a_transcript_is_met_or_not(key: str, met: Any, not_met: Any) -> None:
    assert unmet({key: met}, MENDED, TRANSCRIPT) == []
    (reason,) = unmet({key: not_met}, MENDED, TRANSCRIPT)
    assert reason.startswith(f"{key}: ")


def test_results_in_order_are_the_real_ones_in_the_order_of_the_calls() -> None:
    straight: list[AnyMessage] = [answer("a", "c", "d"), result("r", "c"), result("s", "d")]
    crossed: list[AnyMessage] = [answer("a", "c", "d"), result("r", "d"), result("s", "c")]
    assert not unmet({"results_in_order": ["r", "s"]}, outcome(straight), TRANSCRIPT)
    assert unmet({"results_in_order": ["s", "r"]}, outcome(straight), TRANSCRIPT)
    assert unmet({"results_in_order": ["r", "s"]}, outcome(crossed), TRANSCRIPT)


def test_a_kept_message_has_the_content_that_it_had() -> None:
    changed = outcome([user("u", "other")], [user("u", "hi")])
    assert unmet({"kept": ["u"]}, changed, TRANSCRIPT)


def test_unchanged_means_that_no_repair_was_told_either() -> None:
    same: list[AnyMessage] = [user("u")]
    assert not unmet({"unchanged": True}, outcome(same), TRANSCRIPT)
    assert unmet({"unchanged": True}, outcome(same, same), TRANSCRIPT)


def ran(**changes: Any) -> RunOutcome:
    fields: dict[str, Any] = {
        "rounds": 2,
        "error": None,
        "result": {"status": "completed", "reason": "done", "error": None},
        "ledger": [answer("a", "c"), result("r", "c")],
        "tool_runs": 2,
        "model_calls": 3,
        "after": "completed",
    }
    return RunOutcome(**{**fields, **changes})


LIMIT = {"status": "limit", "reason": "turns", "error": None}
FAILED = {"status": "failed", "reason": "fault", "error": {"message": "Recursion limit of 25"}}


@pytest.mark.parametrize(
    ("key", "wanted", "met", "not_met"),
    [
        ("ends_by", "own budget or done", ran(), ran(tool_runs=1)),
        ("ends_by", "own budget or done", ran(result=LIMIT), ran(result=FAILED)),
        ("any_of", ["the run completes"], ran(), ran(result=LIMIT)),
        ("any_of", ["it stops with a clear message"], ran(result=LIMIT), ran(result=FAILED)),
        ("any_of", [{"tool_runs": 1}, {"tool_runs": 2}], ran(), ran(tool_runs=3)),
        ("no_graph_recursion_error", True, ran(), ran(result=FAILED)),
        ("no_graph_recursion_error", True, ran(), ran(error=RecursionError("25"), result={})),
        ("thread_usable_after", True, ran(), ran(after="BusyThreadError")),
        ("open_calls", [], ran(), ran(ledger=[answer("a", "c")])),
        ("no_exception", True, ran(), ran(error=ValueError("no"), result={})),
        ("tool_runs", 2, ran(), ran(tool_runs=3)),
        ("model_calls", 3, ran(), ran(model_calls=4)),
        ("max_model_calls", 3, ran(), ran(model_calls=4)),
        ("clear_message", True, ran(result=LIMIT), ran(result={"status": "limit"})),
        ("clear_error", True, ran(result=LIMIT), ran(result=FAILED)),
    ],
)
def test_a_key_about_a_long_run_is_met_or_not(
    key: str, wanted: Any, met: RunOutcome, not_met: RunOutcome
) -> None:
    assert unmet({key: wanted}, met, RECURSION) == []
    (reason,) = unmet({key: wanted}, not_met, RECURSION)
    assert reason.startswith(f"{key}: ")


def test_an_end_that_no_one_knows_is_a_fault() -> None:
    assert unmet({"ends_by": "luck or done"}, ran(), RECURSION)
    assert unmet({"any_of": ["the run is fine"]}, ran(), RECURSION)


@pytest.mark.parametrize("known", [TRANSCRIPT, RECURSION])
def test_an_unknown_key_is_a_fault_and_a_text_for_people_is_not(known: Any) -> None:
    assert unmet({"kepd": ["u"]}, None, known) == ["unknown key 'kepd' in expect"]
    assert unmet({"alt_ok": "either will do"}, None, known) == []


def test_every_key_has_a_named_check() -> None:
    for check in (*TRANSCRIPT.values(), *RECURSION.values()):
        assert check.__name__ != "<lambda>"
        assert check.__doc__
    assert set(PEOPLE.values()) == {checks.for_people}
