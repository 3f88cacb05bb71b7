"""How keys of `expect` are met by facts about storage."""

import pytest

from tests.conformance.storage.facts import reasons

FACTS = {
    "errors": 0,
    "db_mb": 7.5,
    "turn_finishes_s": 0.5,
    "turn_succeeds": True,
    "rows_left_for": {"t1": 0, "t2": 3},
}


@pytest.mark.parametrize(
    "expect",
    [
        {"errors": 0, "turn_succeeds": True},
        {"db_mb_max": 8, "max_db_mb": 8, "db_mb_min": 7, "min_db_mb": 7},
        {"db_mb_between": [7, 8], "errors_any_of": [0, 1]},
        {"turn_finishes_within_s": 5},
        {"rows_left_for": {"t1": 0}},
        {"any_of": [{"errors": 1}, {"db_mb_max": 8}], "note": "for people"},
    ],
)
def test_facts_meet_a_key_or_a_bound(expect: dict[str, object]) -> None:
    assert reasons(expect, FACTS) == []


@pytest.mark.parametrize(
    "expect",
    [
        {"errors": 1},
        {"errors": False},
        {"turn_succeeds": 1},
        {"db_mb_max": 7},
        {"db_mb_between": [8, 9]},
        {"turn_finishes_within_s": 0.1},
        {"rows_left_for": {"t2": 0}},
        {"rows_left_for": {"t3": 0}},
        {"any_of": [{"errors": 1}, {"db_mb_max": 7}]},
        {"db_kb_max": 8},
    ],
)
def test_what_is_not_met_or_not_known_is_a_reason(expect: dict[str, object]) -> None:
    assert len(reasons(expect, FACTS)) == 1
