"""Kinds `stream-delta`, `sse-bytes` and `usage`: one odd stream, and what a run makes of it."""

from collections.abc import Sequence

from tests.conformance.checks import unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.streams import (
    STREAMS,
    TRANSPORT_KEYS,
    followed_by,
    names_in,
    play,
    replies_of,
)


async def drive(case: Case) -> Sequence[str]:
    """Let the server send the stream, then plain answers, and look at what the run did."""
    unknown = unknown_keys("input", case.input, TRANSPORT_KEYS)
    if unknown:
        return unknown
    names = names_in([case.input, case.expect.get("tool_calls")])
    streamed = await play(followed_by(replies_of(case.input), case.input), names)
    return unmet(case.expect, streamed, STREAMS)
