"""Suite `retry_sequences`: what a run makes of outcomes in a row, one for each request.

Through the real HTTP server and client; waits pass in virtual time.
"""

from collections.abc import Sequence
from typing import Any

from loopwright import Agent, Settings
from loopwright.events import AnyEvent, Retry
from loopwright.presets.orkas import code_of
from loopwright.testing import HttpReply, VirtualClock
from loopwright.testing.http import Drop
from loopwright.testing.server import RawReply, Reply
from tests.conformance.asking import LONG, SUMMARY, Asked, SteppedClock, ask
from tests.conformance.running import Case, difference, unknown_keys

OVERFLOW = HttpReply(
    status=400,
    body={"error": {"message": "prompt is too long", "code": "context_length_exceeded"}},
)
WORDS: dict[str, Reply] = {
    "ok": "Done.",
    "auth": HttpReply(status=401, body={"error": {"message": "wrong key"}}),
    "overflow": OVERFLOW,
    "cancel_in_wait": HttpReply(status=500),
    "network": RawReply(writes=[Drop()]),
    "timeout": HttpReply(status=408),
}


async def drive(case: Case) -> Sequence[str]:
    """Give the outcomes to the requests of one prompt and compare what came of it."""
    given = case.input
    unknown = unknown_keys("input", given, ["outcomes", "max_retries", "compact_fails"])
    keys = ["status", "code", "calls", "retries", "compactions"]
    unknown += unknown_keys("expected", case.expect, keys)
    if unknown:
        return unknown
    asked = await _asked(given)
    found: dict[str, Any] = {
        "status": asked.result.status,
        "code": _code(asked),
        "calls": len(asked.bodies),
        "retries": len(asked.bodies) - 1 - asked.compactions,
        "compactions": asked.compactions,
    }
    return [
        reason for key in case.expect for reason in difference(key, found[key], case.expect[key])
    ]


async def _asked(given: dict[str, Any]) -> Asked:
    outcomes, cancels = given["outcomes"], "cancel_in_wait" in given["outcomes"]
    replies = [_reply(word) for word in outcomes]

    async def cancel(agent: Agent, event: AnyEvent) -> None:
        if isinstance(event, Retry) and event.attempt == len(outcomes):
            agent.abort()

    return await ask(
        lambda number, body: replies[number],
        settings=Settings(
            retries=given.get("max_retries", 3), stall_timeout=None, compaction_tail=2
        ),
        history=LONG,
        summary=lambda: HttpReply(status=400) if given.get("compact_fails") else SUMMARY,
        listen=cancel if cancels else None,
        clock=VirtualClock() if cancels else SteppedClock(),  # its waits never end by themselves
    )


def _reply(word: str) -> Reply:
    if word in WORDS:
        return WORDS[word]
    if not word.isdigit():
        raise ValueError(f"unknown outcome {word!r}")
    return HttpReply(status=int(word))


def _code(asked: Asked) -> str | None:
    return code_of(asked.result)
