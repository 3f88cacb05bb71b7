"""Kinds `finish-reason`, `length` and `empty`: what a run makes of how its model's answers end.

A server that cuts an answer off cuts the next ones too, and so does one whose answers are empty.
"""

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from loopwright.providers.completion_chunks import CompletionReader
from loopwright.state.messages import stop_reason
from loopwright.state.notes import rule_of
from loopwright.testing import Response
from loopwright.unfinished import EMPTY
from tests.conformance.checks import Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.streams import (
    STREAMS,
    TRANSPORT_KEYS,
    Streamed,
    followed_by,
    model_calls,
    names_in,
    play,
    replies_of,
)


async def drive_stream(case: Case) -> Sequence[str]:
    """One stream, again and again if nothing would come of it, then plain answers."""
    unknown = unknown_keys("input", case.input, TRANSPORT_KEYS)
    if unknown:
        return unknown
    again = case.expect.get("next") == "empty_reply" or _stops_at_limit(case.input)
    given = {"repeat_last_attempt": again, **case.input}
    names = names_in([case.input, case.expect.get("tool_calls")])
    streamed = await play(followed_by(replies_of(given), given), names)
    return unmet(case.expect, streamed, ENDINGS)


def _stops_at_limit(given: dict[str, Any]) -> bool:
    """Whether a stream's word is one for the output limit; it has one word at most."""
    reader = CompletionReader()
    words = [reader.read(chunk).response_metadata for chunk in given.get("chunks", ())]
    found = [word["finish_reason"] for word in words if word]
    return found in (["length"], ["max_tokens"])


async def drive_replies(case: Case) -> Sequence[str]:
    """Replies in words: `call ID`, `empty stop` (with a star: from here on), `final TEXT`, or an
    object with content and finish reason. Behind them are plain answers.
    """
    unknown = unknown_keys("input", case.input, ["replies", "task_done_by_tool"])
    if unknown:
        return unknown
    rows = case.input["replies"]
    script = [_response(row) for row in rows]
    endless = isinstance(rows[-1], str) and rows[-1].endswith("*")
    replies = chain(script, repeat(script[-1] if endless else Response(text="Done.")))
    return unmet(case.expect, await play(replies, ["work"]), ENDINGS)


def _response(row: Any) -> Response:
    if isinstance(row, dict):
        if unknown := set(row) - {"content", "finish"}:
            raise ValueError(f"unknown keys {unknown} in a reply")
        return Response(text=row.get("content") or "", stop=row.get("finish"))
    word, _, rest = row.rstrip("*").partition(" ")
    if word == "call":
        return Response(calls=[(rest, "work", {"for": rest})])
    if word == "empty":
        return Response(stop=rest or "stop")
    if word in ("final", "text"):
        return Response(text=rest or "Done.")
    raise ValueError(f"a reply of the form {row!r}")


# ---- what is expected


def next_(streamed: Streamed, wanted: str) -> str | None:
    """What the run did behind the first answer."""
    reason = NEXT.get(wanted)
    return f"unknown word {wanted!r}" if reason is None else reason(streamed, wanted)


def _ran_tools(streamed: Streamed, wanted: str) -> str | None:
    last = streamed.requests[-1]["messages"][-1]["role"]
    return equal((bool(streamed.ran), len(streamed.requests), last), (True, 2, "tool"))


def _final(streamed: Streamed, wanted: str) -> str | None:
    return model_calls(streamed, 1) or equal(streamed.result.status, "completed")


def _nudged(streamed: Streamed, wanted: str) -> str | None:
    return nudges_max(streamed, 1) or visible(streamed, True) or model_calls(streamed, 2)


def _refused(streamed: Streamed, wanted: str) -> str | None:
    return model_calls(streamed, 1) or marked_as(streamed, "filtered")


NEXT: dict[str, Check] = {
    "empty_reply": _nudged,
    "final": _final,
    "final_refused": _refused,
    "run_tools": _ran_tools,
}


def next_any_of(streamed: Streamed, wanted: list[str]) -> str | None:
    """One of these."""
    reasons = [next_(streamed, word) for word in wanted]
    return None if None in reasons else "; ".join(map(str, reasons))


def _nudges(streamed: Streamed) -> int:
    return sum(rule_of(message) == EMPTY for message in streamed.ledger)


def nudges(streamed: Streamed, wanted: int) -> str | None:
    """How often the model was asked for an answer after an empty one."""
    return equal(_nudges(streamed), wanted)


def nudges_max(streamed: Streamed, wanted: int) -> str | None:
    """At most so often."""
    return None if _nudges(streamed) <= wanted else f"{_nudges(streamed)} nudges"


def visible(streamed: Streamed, wanted: bool) -> str | None:
    """The user sees a text at the end."""
    return equal(bool(streamed.result.final_text.strip()), wanted)


def retry(streamed: Streamed, wanted: bool) -> str | None:
    """A request was sent again."""
    return equal(streamed.retries > 0, wanted)


def marked_as(streamed: Streamed, wanted: str) -> str | None:
    """This field of the result is set."""
    return None if getattr(streamed.result, wanted, False) else f"is {streamed.result}"


def tool_runs(streamed: Streamed, wanted: int) -> str | None:
    """How many calls were executed."""
    return equal(len(streamed.ran), wanted)


def final(streamed: Streamed, wanted: str) -> str | None:
    """The text that the user is given at the end."""
    return equal(streamed.result.final_text, wanted)


def ends_with(streamed: Streamed, wanted: str) -> str | None:
    """How the run ended, in the words of the cases: by a visible note, or by a clear message that
    names the output limit; anything else is a text.
    """
    said = (streamed.result.error or {}).get("message", "") or streamed.result.final_text
    if wanted == "visible note":
        return visible(streamed, True) or equal(streamed.result.status, "completed")
    if wanted.startswith("clear message"):
        fits = "output limit" in said and stop_reason(streamed.answers[-1]) == "length"
        return None if fits else f"it ends with {said!r}"
    return None if said.endswith(wanted) else f"it ends with {said!r}"


ENDINGS: dict[str, Check] = {
    **STREAMS,
    "ends_with": ends_with,
    "final": final,
    "marked_as": marked_as,
    "next": next_,
    "next_any_of": next_any_of,
    "nudges": nudges,
    "nudges_max": nudges_max,
    "retry": retry,
    "tool_runs": tool_runs,
    "visible": visible,
    "visible_to_user": visible,
}
