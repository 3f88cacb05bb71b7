"""Scripts are played as they are written, and each key about them can be met and not met."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.state.messages import Call, failure, tool_error
from loopwright.state.repair import interrupted
from tests.conformance.checks import unmet
from tests.conformance.kinds import steering
from tests.conformance.running import Case
from tests.conformance.scenarios.checking import SCRIPT, checks_of
from tests.conformance.scenarios.outcome import AGAIN, Outcome
from tests.conformance.scenarios.record import Record
from tests.conformance.scenarios.words import Step, UnknownWordError, parts, policies, steps
from tests.ledgers import answer, result, user

STEERED = "steer between every two points"
SCRIPTS: dict[str, tuple[list[str], dict[str, Any], dict[str, Any]]] = {
    STEERED: (
        [
            *("user:task", "model:call c1 c2", "steer:S1", "tools_start", "followup:F1"),
            *("tools_end", "steer:S2", "drain", "steer:S3", "model:final", "steer:S4", "model"),
        ],
        {},
        {
            "order": ["task", "c1", "c2", "S1", "S2", "S3", "S4", "F1"],
            "each_once": True,
            "lost": [],
            "executed_calls": ["c1", "c2"],
            "status": "completed",
            "no_exception": True,
            "thread_usable_after": True,
        },
    ),
    "too late for the run": (
        ["user:task", "model:final", "drain", "steer:S1", "run_end"],
        {},
        {"queued": ["S1"], "each_once": True, "S1": "kept in queue"},
    ),
    "a prompt while a tool runs is queued": (
        ["user:task", "model:call c1", "user:more", "tools_end", "model"],
        {},
        {"order": ["task", "c1", "more"], "each_once": True},
    ),
    "prompts and what waits for the next": (
        ["user:task", "model", "user:more", "model", "idle", "queue:Q", "steer:S", "user:third"],
        {},
        {"order": ["task", "more", "third", "S", "Q"], "each_once": True},
    ),
    "at the limit of turns": (
        ["user:task", "model:call c1", "max_turns:1", "followup:F1", "tools_end"],
        {},
        {"F1": "kept in queue", "status": "limit", "no_stop": False, "each_once": True},
    ),
    "one tool has ended when the user cancels": (
        ["user:task", "model:call c1,c2", "tools_end c2", "steer:S1", "cancel"],
        {"mode": "parallel"},
        {"answered_with_error": ["c1"], "S1": "delivered", "status": "cancelled"},
    ),
    "sequential tools, both to their end": (
        ["user:task", "model:call c1 c2", "tools_end", "steer:S1", "drain", "model"],
        {"mode": "sequential"},
        {"order": ["task", "c1", "c2", "S1"], "tool_runs": 2},
    ),
    "all that waits at once": (
        ["user:task", "followup:F1", "followup:F2", "model", "model"],
        {"policy": "follow_up_mode=all"},
        {"order": ["task", "F1", "F2"], "model_calls": 2},
    ),
    "going on after a stop with something queued": (
        ["user:task", "model:call c1", "followup:F1", "stop", "continue", "model:final:Bye"],
        {},
        {"tool_runs": 1, "no_exception": True, "final": "Bye", "order": ["task", "c1", "F1"]},
    ),
    "going on after a stop with nothing queued": (
        ["user:task", "model:call c1", "stop", "continue"],
        {},
        {"no_exception": False, "clear_message": True, "thread_usable_after": True},
    ),
    "cancelled twice": (
        ["run", "cancel", "run", "cancel"],
        {},
        {"status": "cancelled", "tool_runs": 2, "stops_within_s": 60},
    ),
    "half a text": (
        ["stream half of the text", "cancel"],
        {},
        {"stored_as_final": False, "text_duplicated": False, "executed_calls": []},
    ),
    "a finished tool before the cancel": (
        ["tool ran", "cancel"],
        {},
        {"answered_with_error": [], "never_later_overwritten_by": "completed"},
    ),
    "a reader that leaves the agent's stream": (
        ["stream, take 3 events, close"],
        {},
        {"status": "completed", "no_task_left": True},
    ),
    "a cancel on an idle thread": (
        ["cancel"],
        {},
        {"no_exception": True, "thread_usable_after": True},
    ),
}


def case(script: list[str], expect: dict[str, Any], **given: Any) -> Case:
    return Case("x", {"events": script, **given}, expect)


@pytest.mark.anyio
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_comes_to_what_it_says(name: str) -> None:
    script, given, expect = SCRIPTS[name]
    assert await steering.drive(case(script, expect, **given)) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "given", "reason"),
    [
        (["user:task", "fly"], {}, "unknown step 'fly'"),
        (["model:error"], {}, "unknown step 'model:error'"),
        (["user:task"], {"policy": "turbo"}, "unknown policy 'turbo'"),
        (["user:task"], {"clock": 1}, "unknown key 'clock' in input"),
        (["model:call c1"], {}, "model:call c1: the model is not asked, no run is going on"),
        (["user:task", "tools_end"], {}, "tools_end : no tool was called"),
        (["user:task", "tools_start c9"], {}, "tools_start c9: the tools that wait are []"),
        (
            ["sub-agent runs sleep 305"],
            {},
            "needs sub-agents and a shell tool, which the runtime does not have",
        ),
        (["user:task", "model:call c1", "model:call c2"], {}, "unknown key 'kepd' in expect"),
    ],
)
async def test_what_a_script_cannot_say_or_have_is_a_failure(
    script: list[str], given: dict[str, Any], reason: str
) -> None:
    assert await steering.drive(case(script, {"kepd": 1}, **given)) == [reason]


def test_words_become_steps() -> None:
    assert steps(["user: a b ", "model:call c1,c2", "kill -9", "model"]) == [
        Step("user", "a b"),
        Step("call", "c1,c2"),
        Step("kill"),
        Step("final"),
    ]
    assert [len(part) for part in parts(steps(["idle", "kill -9", "kill -9", "resume"]))] == [
        1,
        0,
        1,
    ]
    with pytest.raises(UnknownWordError):
        steps(["stop it"])


def test_policies_become_settings() -> None:
    assert policies("cancel_policy=leave; max_turns=3", "all") == {
        "cancel_policy": "leave",
        "limits": {"turns": 3},
        "steering_mode": "all",
        "follow_up_mode": "all",
    }
    assert policies(None, "default") == {}


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
