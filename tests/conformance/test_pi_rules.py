"""Rules of Pi's agent core that no recorded trace shows, in scenarios of our own.

Each is played in every variant and must leave the same trace in all of them. What is expected is
what the rules beside the traces say (BEHAVIOUR.md, by section).
"""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.conformance.pi.comparing import difference
from tests.conformance.pi.keys import unknown
from tests.conformance.pi.playing import played
from tests.conformance.pi.variants import VARIANTS, Variant

Json = dict[str, Any]
MEMORY = VARIANTS[0]

PROMPT = [{"do": "prompt", "text": "go"}]
OK = {"text": "ok"}
ABC = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
CALLS = {"calls": [["c1", "a", {}], ["c2", "b", {}], ["c3", "c", {}]]}
CALL = {"calls": [["c1", "a", {}]]}
AROUND_CALLS: Json = {"beforeToolCall": {}, "afterToolCall": {}}
LATER = {"prepareNextTurn": {"model": "m7"}, "shouldStopAfterTurn": {"value": True}}
SEQUENTIAL = {"toolExecution": "sequential"}


def on(when: Json, *actions: Json) -> list[Json]:
    """One trigger."""
    return [{"when": when, "do": list(actions)}]


def failing(error: str) -> Json:
    """An action that raises."""
    return {"do": "throw", "error": error}


@dataclass(frozen=True)
class Rule:
    """A scenario, and the lines that its log has of these kinds."""

    name: str
    scenario: Json
    kinds: str
    log: str


RULES = [
    Rule(
        "5, 8: an abort in a call's preparation ends earlier calls unrun and later ones untold",
        {
            "tools": ABC,
            "hooks": AROUND_CALLS,
            "responses": [CALLS],
            "on": on({"hook": "beforeToolCall", "id": "c2"}, {"do": "abort"}),
        },
        "hook event:tool_execution tool:enter request",
        "request:1 event:tool_execution_start:c1 hook:beforeToolCall:c1 "
        "event:tool_execution_start:c2 hook:beforeToolCall:c2 event:tool_execution_end:c2 "
        "event:tool_execution_end:c1 request:2",
    ),
    Rule(
        "8: an abort in the first step of the first body keeps the others from running",
        {
            "tools": ABC,
            "hooks": {"afterToolCall": {}},
            "responses": [CALLS],
            "on": on({"tool": "c1"}, {"do": "abort"}),
        },
        "tool:enter hook event:tool_execution_end request",
        "request:1 tool:enter:c1 event:tool_execution_end:c2 event:tool_execution_end:c3 "
        "hook:afterToolCall:c1 event:tool_execution_end:c1 request:2",
    ),
    Rule(
        "3: a batch that an abort cuts short is judged on the results it has",
        {
            "agent": SEQUENTIAL,
            "tools": [{"name": "a", "run": {"terminate": True}}, *ABC[1:]],
            "responses": [CALLS],
            "on": on({"tool": "c1"}, {"do": "abort"}),
        },
        "tool:enter event:tool_execution_end poll request event:agent_end",
        "poll:steering:0 request:1 tool:enter:c1 event:tool_execution_end:c1 poll:steering:0 "
        "poll:followUp:0 event:agent_end",
    ),
    Rule(
        "8: a provider that ignores the abort ends the run like a success",
        {
            "responses": [{"text": ["a", "b"], "ignoreAbort": True}],
            "on": on({"event": "message_update"}, {"do": "abort"}),
        },
        "event:message_end event:agent poll",
        "event:agent_start event:message_end:user poll:steering:0 event:message_end:assistant "
        "poll:steering:0 poll:followUp:0 event:agent_end",
    ),
    Rule(
        "9: a subscriber that raises at agent_end makes a second one behind a failure",
        {"responses": [OK], "on": on({"event": "agent_end"}, failing("broke"))},
        "event:message_end event:turn_end event:agent_end",
        "event:message_end:user event:message_end:assistant event:turn_end:assistant "
        "event:agent_end event:message_end:assistant event:turn_end:assistant event:agent_end",
    ),
    Rule(
        "9: a subscriber that raises again while the run fails leaves the agent idle, without end",
        {
            "responses": [OK, OK],
            "on": on({"event": "message_end", "role": "assistant", "every": True}, failing("x")),
            "steps": [*PROMPT, {"do": "probe", "label": "after"}],
        },
        "event:message_end event:turn_end event:agent_end probe",
        "event:message_end:user event:message_end:assistant event:message_end:assistant "
        'probe:after:{"error":null,"isStreaming":false,"messages":2,"pending":[],'
        '"queued":false,"streaming":null}',
    ),
    Rule(
        "9: a subscriber that raises before the first turn",
        {
            "listenersBefore": [{"id": "L", "throw": "broke", "only": ["turn_start"]}],
            "agent": {"model": "m5"},
            "responses": [OK],
        },
        "event request",
        "event:agent_start event:message_start:assistant event:message_end:assistant "
        "event:turn_end:assistant event:agent_end",
    ),
    Rule(
        "9: a stop hook that raises gives two turn_end for one turn_start",
        {"hooks": {"shouldStopAfterTurn": {"throw": "broke"}}, "responses": [OK]},
        "event:turn hook",
        "event:turn_start event:turn_end:assistant hook:shouldStopAfterTurn:1 "
        "event:turn_end:assistant",
    ),
    Rule(
        "5: a slow hook on the last call holds back the first body",
        {
            "tools": ABC,
            "hooks": {"beforeToolCall": {"byId": {"c3": {"delay": 3}}}},
            "responses": [CALLS, OK],
        },
        "hook tool:enter",
        "hook:beforeToolCall:c1 hook:beforeToolCall:c2 hook:beforeToolCall:c3 "
        "tool:enter:c1 tool:enter:c2 tool:enter:c3",
    ),
    Rule(
        "5: a body does not wait for those who hear of its progress, its result does",
        {
            "tools": [{"name": "a", "run": {"updates": ["1", "2"], "delay": 1}}],
            "hooks": {"afterToolCall": {}},
            "listeners": [{"id": "L", "log": True, "delay": 3, "only": ["tool_execution_update"]}],
            "responses": [CALL, OK],
        },
        "tool:return listener hook event:tool_execution_end",
        "listener:L:tool_execution_update listener:L:tool_execution_update tool:return:c1 "
        "listener:L:tool_execution_update:done listener:L:tool_execution_update:done "
        "hook:afterToolCall:c1 event:tool_execution_end:c1",
    ),
    Rule(
        "10: two ends of a parallel batch may be in delivery at the same time",
        {
            "tools": [{"name": "a", "run": {"delay": 1}}, {"name": "b", "run": {"delay": 2}}],
            "listeners": [{"id": "L", "log": True, "delay": 5, "only": ["tool_execution_end"]}],
            "responses": [{"calls": CALLS["calls"][:2]}, OK],
        },
        "event:tool_execution_end listener event:message_end:toolResult",
        "event:tool_execution_end:c1 listener:L:tool_execution_end event:tool_execution_end:c2 "
        "listener:L:tool_execution_end listener:L:tool_execution_end:done "
        "listener:L:tool_execution_end:done event:message_end:toolResult:c1 "
        "event:message_end:toolResult:c2",
    ),
    Rule(
        "10: one who subscribes during a delivery hears it, one removed before its turn does not",
        {
            "listeners": [{"id": "L", "log": True}],
            "responses": [OK],
            "on": on(
                {"event": "turn_end"},
                {"do": "subscribe", "id": "N"},
                {"do": "unsubscribe", "id": "L"},
            ),
        },
        "event:turn_end event:agent_end listener:L:turn_start listener:L:turn_end listener:N",
        "listener:L:turn_start event:turn_end:assistant listener:N:turn_end event:agent_end "
        "listener:N:agent_end",
    ),
    Rule(
        "10: a hook set in a run counts from the next run on, only prepareNextTurn at once",
        {
            "tools": ABC,
            "hooks": {"prepareNextTurn": {}},
            "responses": [CALL, OK, OK],
            "on": on(
                {"tool": "c1"},
                {"do": "set", "field": "hook", "value": LATER},
            ),
            "steps": [*PROMPT, {"do": "mark", "label": "next"}, *PROMPT],
        },
        "hook request mark",
        "request:1 hook:prepareNextTurn:1 request:2 mark:next request:3 hook:shouldStopAfterTurn:1",
    ),
    Rule(
        "10: a custom role at the tail is continued with a normal first poll",
        {
            "agent": {"messages": [{"text": "u"}, {"role": "assistant"}, {"role": "ui"}]},
            "responses": [OK],
            "steps": [{"do": "steer", "text": "s"}, {"do": "continue"}],
        },
        "poll event:message_end event:agent",
        "event:agent_start poll:steering:1 event:message_end:user event:message_end:assistant "
        "poll:steering:0 poll:followUp:0 event:agent_end",
    ),
    Rule(
        "3: a failed answer runs no tool and asks nothing, even if it has calls",
        {
            "tools": ABC,
            "hooks": {**AROUND_CALLS, "shouldStopAfterTurn": {}},
            "responses": [{**CALLS, "error": "broke"}],
        },
        "event:turn event:agent_end hook tool poll",
        "event:turn_start poll:steering:0 event:turn_end:assistant event:agent_end",
    ),
    Rule(
        "8: an abort during tools takes steering into the turn that the signal ends",
        {
            "tools": [{"name": "a", "run": {"waitAbort": "throw"}}],
            "responses": [CALL],
            "steps": [
                {"do": "prompt", "text": "go", "start": "r"},
                {"do": "sleep", "units": 1},
                {"do": "steer", "text": "s"},
                {"do": "followUp", "text": "f"},
                {"do": "abort"},
                {"do": "await", "id": "r"},
            ],
        },
        "poll request do event:message_end:user event:agent_end",
        "event:message_end:user poll:steering:0 request:1 do:steer:s do:followUp:f do:abort "
        "poll:steering:1 event:message_end:user request:2 event:agent_end",
    ),
]


def scenario(rule: Rule) -> Json:
    """The rule's scenario with a prompt, if it has no steps of its own."""
    return {"steps": PROMPT, **rule.scenario}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_holds_in_every_variant(rule: Rule) -> None:
    assert unknown(scenario(rule)) == []
    straight, fault = played(scenario(rule), MEMORY)
    assert fault is None
    kinds = tuple(rule.kinds.split(" "))
    assert " ".join(line for line in straight["log"] if line.startswith(kinds)) == rule.log
    for variant in VARIANTS[1:]:
        trace, fault = played(scenario(rule), variant)
        assert (difference(straight, trace, is_raw=False), fault) == (None, None), variant.name


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_what_transform_context_changes_in_place_stays_for_the_run_only(variant: Variant) -> None:
    hooks = {"transformContext": {"calls": {"1": {"mutatePush": "kept"}}}}
    steps = [*PROMPT, *PROMPT]
    trace, _ = played(
        {"tools": ABC, "hooks": hooks, "responses": [CALL, OK, OK], "steps": steps}, variant
    )
    texts = [[m.get("text") for m in request["messages"]] for request in trace["requests"]]
    assert texts == [
        ["go", "kept"],
        ["go", "kept", None, "a({})"],
        ["go", None, "a({})", "ok", "go"],
    ]
    assert [m.get("text") for m in trace["transcript"]] == ["go", None, "a({})", "ok", "go", "ok"]


@pytest.mark.parametrize(
    ("kind", "filled"), [("number", 0), ("integer", 0), ("string", ""), ("array", None)]
)
def test_a_null_for_a_required_field_becomes_empty(kind: str, filled: Any) -> None:
    params = {"type": "object", "properties": {"v": {"type": kind}}, "required": ["v"]}
    tool = {"name": "a", "params": params}
    calls = {"calls": [["c1", "a", {"v": None}]]}
    trace, _ = played({"tools": [tool], "responses": [calls, OK], "steps": PROMPT}, MEMORY)
    arguments = [run["args"] for run in trace["toolRuns"]]
    assert arguments == ([] if filled is None else [{"v": filled}])


def test_an_error_message_shows_whatever_the_stop_reason_is() -> None:
    answer = {"text": "well", "stop": "stop", "error": "warned"}
    trace, _ = played({"responses": [answer], "steps": PROMPT}, MEMORY)
    assert trace["final"]["error"] == "warned"
    assert "poll:followUp:0" in trace["log"]
