"""Each key of `expect` about a script has a check that passes and that can fail."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.state.messages import Call, failure, tool_error
from loopwright.state.repair import interrupted
from tests.conformance.checks import unmet
from tests.conformance.scenarios.checking import SCRIPT, checks_of
from tests.conformance.scenarios.outcome import AGAIN, Outcome
from tests.conformance.scenarios.record import Record
from tests.ledgers import answer, result, user

ENDED = {"run_id": "r1", "status": "completed", "reason": "answered", "error": ""}
CANCELLED = {**ENDED, "status": "cancelled", "reason": "aborted"}
RECORD = Record(
    given=["task", "S1", "F1", "late"],
    late=["late"],
    executed=["c1", "c1"],
    finished=["c1"],
    asked=[["task"], ["task", "S1"]],
    ended=[ENDED],
)
LEDGER: list[AnyMessage] = [
    user("u1", "task"),
    answer("a1", "c1", "c2"),
    result("t1", "c1"),
    tool_error(Call("c2", "t", {}), "no"),
    user("u2", "S1"),
    answer("a2", "c3", text="half"),
    user("u3", "F1"),
    answer("a3", text="Done."),
]
LATER: list[AnyMessage] = [
    *LEDGER[:6],
    interrupted(Call("c3", "t", {})),
    *LEDGER[6:],
    user("u4", AGAIN),
    user("u5", "late"),
]
PLAYED = Outcome(
    record=RECORD,
    ledger=LEDGER,
    waiting=["late"],
    statuses=[("r1", "completed")],
    tasks_left=[],
    seconds=1.0,
    later="completed",
    later_ledger=LATER,
    faulty=[],
)
CUT_OFF = replace(
    PLAYED,
    record=replace(RECORD, ended=[CANCELLED], refusals=["busy"]),
    ledger=[*LEDGER, failure("", kind="x", reason="aborted", model="m")],
    statuses=[("r1", "cancelled"), ("r1", "completed")],
    tasks_left=["a task"],
    faulty=["orphan_result c1"],
)


@pytest.mark.parametrize(
    ("key", "met", "not_met"),
    [
        ("answered_with_error", ["c2"], ["c1"]),
        ("any_of", [{"tool_runs": 1}, {"tool_runs": 2}], [{"tool_runs": 1}]),
        ("clear_message", True, False),
        ("clear_error", True, False),
        ("count_of", {"S1": 1, "c1": 1, "x": 0}, {"S1": 2}),
        ("delivered", ["task", "F1"], ["late"]),
        ("delivered_or_queued", ["late", "F1"], ["gone"]),
        ("each_once", True, ["gone"]),
        ("either", [{"final": "x"}, {"final": "Done."}], [{"final": "x"}]),
        ("ends_with", "one.", "half"),
        ("ends_with", "completed", "cancelled"),
        ("executed_calls", ["c1", "c1"], ["c1"]),
        ("final", "Done.", "half"),
        ("lost", [], ["S1"]),
        ("marked_as", "answered", "aborted"),
        ("max_model_calls", 2, 1),
        ("model_calls", 2, 3),
        ("never_later_overwritten_by", "cancelled", None),
        ("next_turn_ok", True, False),
        ("no_exception", True, False),
        ("no_process_left", ["sleep 98765.4"], ["python"]),
        ("no_stop", True, False),
        ("no_task_left", True, False),
        ("not", {"final": "x"}, {"final": "Done."}),
        ("not", {"final": "x", "tool_runs": 9}, {"final": "x", "kepd": 1}),
        ("not_lost", ["S1", "late"], ["gone"]),
        ("open_calls", ["c3"], []),
        ("order", ["task", "c1", "S1", "F1"], ["S1", "task"]),
        ("order_any_of", [["S1", "task"], ["task", "S1"]], [["S1", "task"]]),
        ("order_contains", ["task", "F1"], ["F1", "S1"]),
        ("queued", ["late"], []),
        ("status", "completed", "cancelled"),
        ("status_any_of", ["limit", "completed"], ["limit"]),
        ("stops_within_s", 1, 0.5),
        ("stored_as_final", True, False),
        ("synthetic_for", ["c3"], ["c2"]),
        ("synthetic_results", 1, 2),
        ("synthetic_results", ["c3"], []),
        ("text_duplicated", False, True),
        ("thread_usable_after", True, False),
        ("tool_runs", 2, 1),
        ("tool_runs", {"c1": 2}, {"c2": 1}),
        ("user_messages_seen_by_model_in_order", ["task", "S1"], ["task"]),
        ("late", "kept in queue or delivered, not dropped", "delivered"),
        ("late", "delivered by the next run", "returned to the caller"),
        ("F1", "delivered", "kept in queue"),
        ("F1", "not lost", "eaten"),
    ],
)
def test_a_key_about_a_script_is_met_or_not(key: str, met: Any, not_met: Any) -> None:
    checks = checks_of(PLAYED)
    assert unmet({key: met}, PLAYED, checks) == []
    if not_met is not None:
        (reason,) = unmet({key: not_met}, PLAYED, checks)
        assert reason.startswith(f"{key}: ")


@pytest.mark.parametrize(
    "expect",
    [
        {"status": "cancelled"},
        {"never_later_overwritten_by": "completed"},
        {"no_exception": True},
        {"no_task_left": True},
        {"thread_usable_after": True},
        {"stored_as_final": True},
    ],
)
def test_a_run_that_was_cut_off_shows_it(expect: dict[str, Any]) -> None:
    assert unmet(expect, CUT_OFF, SCRIPT)


def test_each_once_sees_what_is_lost_doubled_or_left_behind() -> None:
    left = replace(PLAYED, record=replace(RECORD, late=[]))
    assert unmet({"each_once": True}, left, SCRIPT)
    assert not unmet({"each_once": True}, replace(left, record=replace(CUT_OFF.record)), SCRIPT)
    lost = replace(PLAYED, later_ledger=LATER[:-1])
    doubled = replace(PLAYED, later_ledger=[*LATER, user("u6", "S1")])
    for wrong in (lost, doubled):
        assert unmet({"each_once": True}, wrong, SCRIPT)
    assert unmet({"lost": []}, replace(PLAYED, waiting=[]), SCRIPT)


def test_every_key_has_a_named_check() -> None:
    for check in SCRIPT.values():
        assert check.__name__ != "<lambda>"
        assert check.__doc__
