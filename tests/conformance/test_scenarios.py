"""Scripts are played as they are written, and what they cannot say is a failure."""

from typing import Any

import pytest

from tests.conformance.kinds import steering
from tests.conformance.running import Case
from tests.conformance.scenarios.words import Step, UnknownWordError, parts, policies, steps

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
