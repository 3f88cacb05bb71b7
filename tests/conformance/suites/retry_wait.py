"""Suite `retry_wait`: how long a run waits before it sends a request again, in virtual time.

The earlier attempts fail without a word about waiting; then comes the answer of the vector.
"""

from collections.abc import Sequence
from typing import Any

from loopwright import Settings
from loopwright.testing import HttpReply
from loopwright.testing.server import Reply
from tests.conformance.asking import SteppedClock, ask
from tests.conformance.running import Case, difference, unknown_keys

LONG_BEFORE = 100_000.0


async def drive(case: Case) -> Sequence[str]:
    """Compare the wait that was told, and really slept, or the wait that a failed run names."""
    given, expect = case.input, case.expect
    known = ["attempt", "status", "headers", "now_epoch", "body", "message"]
    unknown = unknown_keys("input", given, known)
    unknown += unknown_keys("expected", expect, ["action", "min_s", "max_s", "retry_after_s"])
    if unknown:
        return unknown
    attempt = given["attempt"]
    clock = SteppedClock(given["now_epoch"] - LONG_BEFORE)

    def reply(number: int, body: dict[str, Any]) -> Reply:
        if number < attempt:
            return HttpReply(status=500)
        if number > attempt:
            return "Done."
        clock.advance(given["now_epoch"] - clock.now())
        said = given.get("body", {"error": {"message": given.get("message", "busy")}})
        return HttpReply(status=given["status"], headers=given.get("headers", {}), body=said)

    settings = Settings(retries=attempt + 1, stall_timeout=None)
    asked = await ask(reply, settings=settings, clock=clock)
    if asked.result.status == "failed":
        wait = asked.retry_after
        reasons = difference("action", "fail", expect["action"])
        if "retry_after_s" in expect:
            reasons += difference("retry_after", wait, expect["retry_after_s"])
        return reasons
    told, slept = asked.retries[attempt].wait, asked.waits[attempt]
    within = expect["min_s"] <= told <= expect["max_s"] if "min_s" in expect else False
    reasons = difference("action", "wait", expect["action"]) + difference("slept", slept, told)
    return reasons + ([] if within else [f"wait is {told}, expected {expect}"])
