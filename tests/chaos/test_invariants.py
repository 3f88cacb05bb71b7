"""Each invariant of the chaos runs notices what breaks it, and a sound thread breaks none."""

from dataclasses import replace

import pytest

from loopwright.state.repair import INTERRUPTED, NOT_EXECUTED
from tests.chaos.invariants import Record, unfinished, violations
from tests.chaos.told import Ended, Found, Line, Queued, Told
from tests.chaos.world import Effect

PROMPT = Line("m1", "human", "go")
ANSWER = Line("m2", "ai", "I go on.", calls=("c1", "c2"))
PAID = Line("m3", "tool", "pay 1", answers="c1")
LOOKED = Line("m4", "tool", "look 2", answers="c2")
STEERED = Line("m5", "human", "queued 0")

FOUND = Found(
    lines=(PROMPT, ANSWER, PAID, LOOKED, STEERED),
    run=("r1", "ended"),
    delivered=("queued 0",),
    waiting=("queued 1",),
)
EFFECTS = [Effect("pay", "m2", "c1", "pay 1", "k1"), Effect("look", "m2", "c2", "look 2", "k2")]
TOLD = [
    Told("r1", 0, "agent_start"),
    Told("r1", 1, "message_end", line=PROMPT),
    Told("r1", 2, "message_end", line=ANSWER),
    Told("r1", 3, "tool_execution_end", call="c1", text="pay 1", tool="pay"),
    Told("r1", 4, "tool_execution_end", call="c2", text="look 1", tool="look"),
    Told("r1", 5, "message_end", line=PAID),
    Told("r1", 6, "agent_end"),
]
QUEUED = [Queued("steering", "queued 0"), Queued("follow_up", "queued 1")]


def test_a_sound_thread_violates_nothing() -> None:
    assert violations(FOUND, Record(TOLD, QUEUED, [Ended("completed", "answered")]), EFFECTS) == []


def without(line: Line) -> Found:
    return replace(FOUND, lines=tuple(one for one in FOUND.lines if one != line))


@pytest.mark.parametrize(
    ("found", "violated"),
    [
        (without(ANSWER), "but the transcript has None"),
        (without(STEERED), "is there 0 times"),
        (without(STEERED), "'queued 0' counts as delivered and is not"),
        (replace(FOUND, waiting=()), "is there 0 times"),
        (replace(FOUND, waiting=("queued 0", "queued 1")), "is there 2 times"),
        (replace(FOUND, waiting=("queued 0", "queued 1")), "was delivered and still waits"),
        (replace(FOUND, lines=(*FOUND.lines, STEERED)), "two messages have one id"),
        (replace(FOUND, lines=(ANSWER, PROMPT, PAID, LOOKED, STEERED)), "in another order"),
        (replace(FOUND, faults=("orphan_result",)), "not valid: orphan_result"),
        (replace(FOUND, damage=("row 3 missing",)), "damaged: row 3 missing"),
        (replace(FOUND, run=("r1", "running")), "was told to be over and is running"),
        (
            replace(FOUND, lines=(PROMPT, ANSWER, replace(PAID, text=INTERRUPTED), LOOKED)),
            f"call c1 had 'pay 1', and now has {INTERRUPTED!r}",
        ),
        (
            replace(FOUND, lines=(*FOUND.lines[:3], replace(LOOKED, text=NOT_EXECUTED))),
            "call c2 is said not to have been executed, and took effect",
        ),
        (
            replace(FOUND, finished={"c2": "look 1"}),
            "call c2 had 'look 1', and now has 'look 2'",
        ),
        (
            replace(FOUND, lines=(*FOUND.lines[:3], replace(LOOKED, text="look 9"))),
            "call c2 has the result 'look 9', which none of its effects had",
        ),
    ],
)
def test_a_thread_that_is_not_as_it_must_be_is_noticed(found: Found, violated: str) -> None:
    assert violated in "\n".join(violations(found, Record(TOLD, QUEUED), EFFECTS))


def test_an_unsafe_effect_that_happened_twice_is_noticed_and_a_repeatable_one_is_not() -> None:
    again = [*EFFECTS, Effect("look", "m2", "c2", "look 3", "k2")]
    assert violations(FOUND, Record(TOLD, QUEUED), again) == []
    again.append(Effect("pay", "m2", "c1", "pay 3", "k1"))
    twice = "pay m2 c1 took effect more than once"
    assert violations(FOUND, Record(TOLD, QUEUED), again) == [twice]


def test_a_call_with_two_keys_and_a_key_of_two_calls_are_noticed() -> None:
    again = [*EFFECTS, Effect("look", "m2", "c2", "look 3", "k1")]
    assert violations(FOUND, Record(TOLD, QUEUED), again) == [
        "call ('m2', 'c2') came with several keys",
        "several calls came with key 'k1'",
    ]


def test_a_gap_in_the_events_of_a_run_is_noticed() -> None:
    assert violations(FOUND, Record([*TOLD[:2], *TOLD[3:]], QUEUED), EFFECTS) == [
        "run r1 has the events [0, 1, 3, 4, 5, 6]"
    ]


def test_two_runs_that_worked_at_the_same_time_are_noticed() -> None:
    others = [Told("r2", 0, "message_end", line=PROMPT), Told("r2", 1, "message_end", line=PAID)]
    told = [Told("r1", 0, "message_end", line=ANSWER), Told("r1", 1, "message_end", line=LOOKED)]
    assert violations(FOUND, Record([*others, *told], QUEUED), EFFECTS)[-2:] == [
        "run r2 goes on behind another one",
        "run r1 goes on behind another one",
    ]


def test_a_run_that_was_not_completed_is_noticed() -> None:
    record = Record(TOLD, QUEUED, [Ended("failed", "fault")])
    assert violations(FOUND, record, EFFECTS) == [
        "a run ended as Ended(status='failed', reason='fault')"
    ]


def test_what_is_left_open_at_the_end_is_noticed() -> None:
    assert unfinished(replace(FOUND, waiting=())) == []
    left = replace(FOUND, open_calls=("c3",), run=("r1", "running"), leases=("someone",))
    assert unfinished(left) == [
        "call c3 has no result",
        "the run ('r1', 'running') is not over",
        "'queued 1' still waits",
        "someone still holds the thread",
    ]
