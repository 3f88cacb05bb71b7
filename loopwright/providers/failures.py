"""What went wrong in a request: from the exception of any client to the one error of ours.

The words that are known stand in `failure_table`, what an exception carries is read in
`failure_facts`, the wait that a server asks for in `waits`. What a run does about a failure is not
decided here.
"""

from collections.abc import Collection

from langchain_core import exceptions as langchain

from loopwright.errors import (
    ContextOverflowError,
    ModelError,
    ModelErrorKind,
    RequestPart,
)
from loopwright.providers import failure_table as table
from loopwright.providers.failure_facts import Facts, facts_of
from loopwright.providers.waits import LONGEST_ASKED, wait_told
from loopwright.text import clean_text, moment

_LONGEST = 2_000
"""Characters of an error text that are kept: proxies answer with whole web pages."""

_BROKEN = (ValueError, LookupError)
"""What a client comes to when an answer does not have the form that it expects."""

_BUGS = (TypeError, AttributeError, NameError, AssertionError, NotImplementedError)
"""What is a broken answer as well if it arises in a client, and a bug anywhere else."""


def classify(error: BaseException, *, now: float) -> ModelError:
    """The error of ours that stands for a client's; `now` is Unix time in seconds.

    A ContextOverflowError for a request that did not fit. The text is the server's where it gave
    one, and still holds whatever secrets the server repeated: see `redacted`.
    """
    own = _own(error)
    if own is not None:
        return own
    facts = facts_of(error)
    wait = wait_told(facts.headers, facts.body, facts.text, now=now)
    kind = _kind(facts, hinted=wait is not None)
    said = f"HTTP {facts.status}: {facts.text}" if facts.status else facts.text
    if kind == "bug":
        said = f"{type(error).__name__}: {facts.text}"
    said = clean_text(said)[:_LONGEST]
    asked = wait if kind == "rate_limit" else _wait_of_busy(kind, facts, now)
    if asked is not None and asked > LONGEST_ASKED:
        said += f"; it can be asked again in {asked:,.0f} s, at {moment(now + asked)}"
    if kind == "context_overflow":
        return ContextOverflowError(said, status=facts.status)
    return ModelError(
        said,
        kind=kind,
        status=facts.status,
        retry_after=asked,
        refused=_refused(kind, facts),
    )


def _own(error: BaseException | None) -> ModelError | None:
    """An error of ours that a client has wrapped: what a source of keys raises."""
    while error is not None and not isinstance(error, ModelError):
        error = error.__cause__
    return error


def redacted(text: str, secrets: Collection[str]) -> str:
    """The text without the secrets. Words of up to three letters are no secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) > 3:
            text = text.replace(secret, "***")
    return text


def _kind(facts: Facts, *, hinted: bool) -> ModelErrorKind:
    """The first that knows: our own doing, codes, texts, the status, general types, names (K26)."""
    own = _kind_of_ours(facts)
    if own is not None:
        return own
    by_code = table.look_up(table.CODES, facts.words)
    throttled = by_code == "rate_limit" or (by_code is None and facts.status == 429)
    if throttled:
        broke = not hinted and table.BILLING.search(facts.text)
        return "billing" if broke else "rate_limit"
    return (
        by_code
        or _kind_of_text(facts)
        or (table.kind_of_status(facts.status) if facts.status is not None else None)
        or table.look_up(table.TYPES, facts.words)
        or _kind_of_class(facts)
    )


def _kind_of_ours(facts: Facts) -> ModelErrorKind | None:
    if table.CANCELLED.match(type(facts.error).__name__):
        return "cancelled"
    is_bug = isinstance(facts.error, _BUGS) and not facts.is_told
    return "bug" if is_bug and not facts.is_from_client else None


def _kind_of_text(facts: Facts) -> ModelErrorKind | None:
    """What the text says. A client's own complaint about an answer may quote anything."""
    if _is_complaint(facts.error) and not facts.is_told:
        return None
    if table.OVERFLOW.search(facts.text):
        return "context_overflow"
    if table.POLICY.search(facts.text):
        return "content_policy"
    if table.BILLING.search(facts.text):
        return "billing"
    return "tls" if not facts.is_told and table.TLS.search(facts.text) else None


def _kind_of_class(facts: Facts) -> ModelErrorKind:
    if isinstance(facts.error, langchain.ContextOverflowError):
        return "context_overflow"
    if _is_complaint(facts.error):
        return "protocol"
    named = table.kind_of_names(facts.names)
    return named or ("network" if isinstance(facts.error, OSError) else "unknown")


def _is_complaint(error: BaseException) -> bool:
    """Whether it is a client's about an answer; what the network raises may be a ValueError too."""
    return isinstance(error, _BROKEN + _BUGS) and not isinstance(error, OSError)


def _wait_of_busy(kind: ModelErrorKind, facts: Facts, now: float) -> float | None:
    """The wait that counts beside that of a rate limit: a header of a server that is busy."""
    return wait_told(facts.headers, None, "", now=now) if kind == "overloaded" else None


def _refused(kind: ModelErrorKind, facts: Facts) -> RequestPart | None:
    """The part that a server names when it does not take a request."""
    if kind != "bad_request" or facts.status not in (None, 400, 404, 415, 422):
        return None
    return next((part for words, part in table.REFUSED if words.search(facts.text)), None)
