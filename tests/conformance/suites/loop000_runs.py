"""Suite `loop000_runs`: whole runs of the bounded loop on scripted models, tools and cancels.

A key that is missing from what is expected is not compared.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from loopwright.presets.course import ToolResultMessage
from tests.conformance.course import POINTS, Played, play
from tests.conformance.running import Case, difference, unknown_keys

TURN = ("chunks", "final", "fail")
FINAL = ("content", "stopReason", "requestId", "id", "usage")


def _text(played: Played) -> str:
    return played.result.final_text or ""


def _error_codes(played: Played) -> list[str]:
    results = [m for m in played.result.messages if isinstance(m, ToolResultMessage)]
    return [json.loads(m.content)["error"]["code"] for m in results if m.is_error]


VALUES: dict[str, Callable[[Played], Any]] = {
    "status": lambda played: played.result.status,
    "code": lambda played: played.result.error and played.result.error.code,
    "reason": lambda played: played.result.reason,
    "maxSteps": lambda played: played.result.max_steps,
    "finalText": lambda played: played.result.final_text,
    "finalText_code_points": lambda played: len(_text(played)),
    "finalText_sha256": lambda played: hashlib.sha256(_text(played).encode()).hexdigest(),
    "events_rle": lambda played: [
        [type, len(list(group))] for type, group in groupby(event.type for event in played.events)
    ],
    "last_sequence": lambda played: played.events[-1].sequence,
    "model_calls": lambda played: len(played.model.requests),
    "request_ids": lambda played: [request.id for request in played.model.requests],
    "request_sizes": lambda played: [len(request.messages) for request in played.model.requests],
    "transcript_roles": lambda played: [message.role for message in played.result.messages],
    "tool_executions": lambda played: played.tools.executed,
    "tool_error_codes": _error_codes,
}
"""What a run shows under each key of the suite."""


async def drive(case: Case) -> Sequence[str]:
    """Play the case; compare every key, and what holds for every run."""
    unknown = _unknown(case)
    if unknown:
        return unknown
    played = await play(case.input)
    sequences = [event.sequence for event in played.events]
    reasons = difference("the sequence numbers", sequences, list(range(len(sequences))))
    reasons += difference("the last event", played.events[-1].type, "run.finished")
    same = played.events[-1].payload.get("result") is played.result
    reasons += difference("whether the last event holds the result", same, True)
    for key, wanted in case.expect.items():
        reasons += difference(key, _shortened(VALUES[key](played), wanted), wanted)
    return reasons


def _unknown(case: Case) -> list[str]:
    given, abort = case.input, case.input.get("abort", {})
    found = unknown_keys("input", given, ["options", "initial", "tools", "turns", "abort"])
    found += unknown_keys("options", given["options"], ["maxSteps", "requestSequenceStart"])
    found += unknown_keys("abort", abort, ["point", "reason", "step", "index", "call"])
    found += unknown_keys("abort.point", {abort[k]: 0 for k in abort if k == "point"}, POINTS)
    for turn in given.get("turns", []):
        found += unknown_keys("a turn", turn, TURN)
        found += unknown_keys("final", turn.get("final", {}), FINAL)
        found += unknown_keys("fail", turn.get("fail", {}), ["at", "after", "message"])
    return found + unknown_keys("expected", case.expect, VALUES)


def _shortened(actual: Any, wanted: Any) -> Any:
    """First, "..." and last, where the suite writes a list so."""
    if not isinstance(wanted, list) or len(wanted) != 3 or wanted[1] != "...":
        return actual
    return [actual[0], "...", actual[-1]] if len(actual) > 2 else actual
