"""What a failure looks like to a client: a status and one line, never a traceback.

Where failures are caught is the application's (`app`).
"""

from collections.abc import Sequence
from typing import Any

from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    ContinuationError,
    DatabaseError,
    InputError,
    LeaseLostError,
    UnknownThreadError,
)

STATUSES: dict[type[Exception], int] = {
    InputError: 400,
    UnknownThreadError: 404,
    BusyThreadError: 409,
    LeaseLostError: 409,
    ContinuationError: 409,
    ConfigurationError: 422,
}
"""The errors whose text a client may read: what it or whoever set up the server can do."""

UNAVAILABLE = (503, "the server's database cannot be used; its log says why")
UNEXPECTED = (500, "internal error; the server's log says more")


def refusal(error: BaseException) -> tuple[int, str]:
    """The status and the line of text for a failure; what is not ours is told to nobody outside."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status, one_line(str(error))
    return UNAVAILABLE if isinstance(error, DatabaseError) else UNEXPECTED


def invalid(errors: Sequence[Any]) -> str:
    """The first fault of a request that does not have the expected shape, as one line."""
    first = errors[0] if errors else "the request is not valid"
    if not isinstance(first, dict):
        return one_line(str(first))
    place = ".".join(str(part) for part in first.get("loc", ()))
    return one_line(f"{place}: {first['msg']}" if place else str(first["msg"]))


def one_line(text: str) -> str:
    """The text without line breaks, cut to a length that a log or a terminal can show."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 500 else flat[:499] + "…"
