"""Batches whose process is killed: what is found out of them, and what is told when it is wrong."""

from typing import Any

import pytest

from tests.conformance.kinds import checkpoint, resume
from tests.conformance.running import Case

CRASH = {"batch": ["a", "b"], "crash_in": "b"}
KILL = {"batch": 3, "kill_after_finished": 1}

pytestmark = pytest.mark.anyio


async def test_what_ran_before_a_crash_is_not_run_again_in_either_mode() -> None:
    expect = {"runs": {"a": 1, "b": 1}, "a_answered": True, "b_answered": True}
    assert await resume.drive(Case("x", CRASH, expect)) == []


async def test_what_is_expected_wrongly_or_not_known_fails() -> None:
    expect = {"runs": {"a": 2}, "each_call_answered_once": False, "mood": "good"}
    reasons = await resume.drive(Case("x", CRASH, expect))
    assert [reason.split(":")[0] for reason in reasons] == [
        "runs",
        "each_call_answered_once",
        "unknown key 'mood' in expect",
    ]
    wrong: dict[str, Any] = {**CRASH, "mood": "good"}
    assert await resume.drive(Case("x", wrong, {})) == ["unknown key 'mood' in input"]


async def test_what_finished_right_before_a_kill_is_used() -> None:
    expect = {
        "finished_tool_not_run_again": True,
        "each_call_answered_once": True,
        "runs": {"tool1": 1},
    }
    assert await checkpoint.drive(Case("x", KILL, expect)) == []


async def test_a_script_may_be_stopped_and_carried_on() -> None:
    steps = {"steps": ["tool ran", "final text starts", "stop", "continue"]}
    assert await resume.drive(Case("x", steps, {"tool_runs": 1})) == []
    assert await resume.drive(Case("x", steps, {"tool_runs": 2})) == ["tool_runs: is 1, expected 2"]
