"""What the keys of `expect` mean for a request that failed: one named check for each.

The request is real: the agent asks the HTTP server through langchain-openai (see `asking`).
"""

from typing import Any

from langchain_core.messages import AIMessage

from loopwright.state.messages import ABORTED, ERROR, stop_reason
from tests.conformance.asking import CLASSES, Asked
from tests.conformance.checks import PEOPLE, Check, equal


def class_(asked: Asked, wanted: str) -> str | None:
    """What the run did: it sent the request again, it did not, or it made the context smaller."""
    if asked.action == "fatal" and len(asked.bodies) > 1:
        return f"{len(asked.bodies)} requests, although the failure would not pass"
    return equal(CLASSES[asked.action], wanted)


def class_any_of(asked: Asked, wanted: list[str]) -> str | None:
    """One of these classes; `repair_then_retry_once` sends another body once."""
    found = [CLASSES[asked.action]]
    if asked.retries and len(asked.bodies) == 2 and asked.bodies[0] != asked.bodies[1]:
        found.append("repair_then_retry_once")
    return None if set(found) & set(wanted) else f"is {found}, expected one of {wanted}"


def wait_s(asked: Asked, seconds: float) -> str | None:
    """The first wait, as it was told and as it was slept."""
    return equal([asked.retries[0].wait, asked.waits[0]], [seconds, seconds])


def wait_s_between(asked: Asked, bounds: list[float]) -> str | None:
    """The first wait lies within bounds, both included."""
    wait = asked.waits[0]
    return None if bounds[0] <= wait <= bounds[1] else f"is {wait}, expected within {bounds}"


def never_sleep_longer_than_s(asked: Asked, seconds: float) -> str | None:
    """No wait was longer; a run that did not wait says when to try again."""
    if any(wait > seconds for wait in asked.waits):
        return f"slept {asked.waits}"
    failed = asked.result.status == "failed"
    said = (asked.result.error or {}).get("message", "")
    return "the error does not say when" if failed and " at 2" not in said else None


def max_attempts(asked: Asked, count: int) -> str | None:
    """At most this many requests were sent."""
    sent = len(asked.bodies)
    return None if sent <= count else f"{sent} requests"


def must_not(asked: Asked, what: str) -> str | None:
    """Something that must not happen, in words."""
    if what != "send the same body again":
        return f"unknown words {what!r}"
    seen: list[Any] = []
    for body in asked.bodies:
        if body in seen:
            return "the same body was sent again"
        seen.append(body)
    return None


def shown_as_text(asked: Asked, wanted: bool) -> str | None:
    """Whether the server's error stands in the text of an answer."""
    texts = [str(m.text) for m in asked.ledger if isinstance(m, AIMessage)]
    words = [event.reason for event in asked.retries]
    return equal(any(word in text for word in words for text in texts), wanted)


def complete(asked: Asked, wanted: bool) -> str | None:
    """Whether the first answer was taken for a whole one."""
    return equal(not asked.retries and asked.result.status == "completed", wanted)


def stored_as_final(asked: Asked, wanted: bool) -> str | None:
    """Whether a text that was cut off stands in the ledger as if it were an answer."""
    told = [event.message_id for event in asked.retries]
    stored = [m for m in asked.ledger if stop_reason(m) not in (ERROR, ABORTED)]
    return equal(any(m.id in told for m in stored), wanted)


def final_content(asked: Asked, text: str) -> str | None:
    """The text of the last answer."""
    return equal(asked.result.final_text, text)


def content_appears_once_in_history(asked: Asked, wanted: bool) -> str | None:
    """The final text, and no part of it, stands in the ledger once."""
    texts = [str(m.text) for m in asked.ledger if isinstance(m, AIMessage)]
    final = asked.result.final_text
    return equal(sum(bool(text) and text in final for text in texts) == 1, wanted)


def ends_with(asked: Asked, wanted: str) -> str | None:
    """How the run ended: `error` is a failed run with a failed answer at its end."""
    if wanted != "error":
        return equal(asked.result.status, wanted)
    return equal([asked.result.status, stop_reason(asked.ledger[-1])], ["failed", ERROR])


FAILURE: dict[str, Check] = {
    **PEOPLE,
    "class": class_,
    "class_any_of": class_any_of,
    "complete": complete,
    "content_appears_once_in_history": content_appears_once_in_history,
    "ends_with": ends_with,
    "final_content": final_content,
    "max_attempts": max_attempts,
    "max_model_calls": max_attempts,
    "model_calls": lambda asked, count: equal(len(asked.bodies), count),
    "must_not": must_not,
    "never_sleep_longer_than_s": never_sleep_longer_than_s,
    "shown_as_text": shown_as_text,
    "stored_as_final": stored_as_final,
    "wait_s": wait_s,
    "wait_s_between": wait_s_between,
}
