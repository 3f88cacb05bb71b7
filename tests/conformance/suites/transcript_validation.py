"""Suite `transcript_validation`: runs that begin with these messages, and what is wrong there."""

from collections.abc import Sequence

from tests.conformance.course import play
from tests.conformance.running import Case, difference, unknown_keys

TURN = {"final": {"content": [], "stopReason": "stop"}}


async def drive(case: Case) -> Sequence[str]:
    """The faults that the run tells; with any, it is over before the model is asked."""
    unknown = unknown_keys("input", case.input, ["messages"])
    unknown += unknown_keys("expected", case.expect, ["codes", "valid"])
    if unknown:
        return unknown
    played = await play(
        {"options": {"maxSteps": 1}, "initial": case.input["messages"], "turns": [TURN]}
    )
    error = played.result.error
    codes = sorted({fault.code for fault in error.faults}) if error else []
    valid = case.expect.get("valid", not case.expect["codes"])
    told = [(event.type, event.sequence) for event in played.events]
    return [
        *difference("codes", codes, sorted(case.expect["codes"])),
        *difference("the status", played.result.status, "completed" if valid else "failed"),
        *difference("the code", error and error.code, None if valid else "INVALID_TRANSCRIPT"),
        *difference("the requests", len(played.model.requests), int(valid)),
        *([] if valid else difference("the events", told, [("run.finished", 0)])),
    ]
