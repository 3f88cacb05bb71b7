"""How long to wait before a request is sent again: what a server asks for, else our own back-off.

Everything is in seconds. Who waits, and whether at all, is decided by `attempts`.
"""

import random
import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_ASKED = 600.0
"""The longest wait that is obeyed; a server that asks for more is not asked again (K12)."""

LONGEST_OWN = 30.0
"""Our own back-off never waits longer, jitter included (S1-11)."""

_FIRST, _JITTER = 1.0, 0.2

_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
_UNIT = (
    r"(?P<ms>ms|millisec(?:ond)?s?|毫秒)|(?P<s>s(?:ec(?:ond)?s?)?|秒钟?)"
    r"|(?P<m>m(?:in(?:ute)?s?)?|分钟?)|(?P<h>h(?:(?:ou)?rs?)?|(?:个)?小时)|(?P<d>d(?:ays?)?|天)"
)
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*(?:{_UNIT})(?![a-z])(?:\s*(?:,|and)?\s*)", re.IGNORECASE)
_UNNAMED = re.sub(r"\?P<\w+>", "?:", _UNIT)
_DURATION = rf"(?:\d+(?:\.\d+)?\s*(?:{_UNNAMED})(?![a-z])\s*(?:,|and)?\s*)+"
_PROSE = re.compile(
    rf"(?:try(?:ing)?(?: it)? again|retry(?:ing)?|wait|available(?: again)?|resets?|reset)"
    rf"(?:\s+(?:in|after|for|at least|about|another))*\s*:?\s*({_DURATION})"
    rf"|({_DURATION})(?:后|之后|以后)",
    re.IGNORECASE,
)
_WHOLE = re.compile(rf"\s*({_DURATION})", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FIELD = re.compile(
    r"^(?:rate_?limit_?)?(?:retry|resets?|wait|available)_?(?:after|in|delay)"
    r"(?:_?(?P<a>ms|milliseconds|s|secs?|seconds))?$"
    r"|^(?:retry|resets?|wait)_?(?P<b>ms|milliseconds|secs?|seconds)$"
    r"|^(?:(?P<c>ms|secs?|seconds|time)_?)(?:until|to|till|before)_?(?:the_?)?(?:reset|retry)s?$",
    re.IGNORECASE,
)
"""Names of fields that give the time until one may ask again."""


def back_off(attempt: int) -> float:
    """Our own wait before retry number `attempt`, from 0: doubled each time, with jitter."""
    doubled = _FIRST * 2.0 ** min(attempt, 16)
    return min(LONGEST_OWN, doubled * (1 + _JITTER * random.random()))


def wait_told(headers: Mapping[str, str], body: Any, text: str, *, now: float) -> float | None:
    """The wait that an answer names; headers win over its body, and fields over its prose.

    `headers` have names in lower case. What cannot be used (a negative number, no date) is as if it
    were not there; a date in the past means that the time has come.
    """
    for found in (_in_headers(headers, now), _in_fields(body), _in_prose(text)):
        if found is not None:
            return found
    return None


def _in_headers(headers: Mapping[str, str], now: float) -> float | None:
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _number(headers.get(name, ""))
        if milliseconds is not None:
            return milliseconds / 1000
    told = headers.get("retry-after", "")
    seconds = _number(told)
    return _until(told, now) if seconds is None else seconds


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def _until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date.strip())
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # HTTP dates are in GMT, also in the old form that does not say it
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _in_fields(body: Any) -> float | None:
    """A field that gives the time until one may ask again, wherever it stands in a body."""
    for name, value in _fields(body):
        match = _FIELD.match(_snake(name))
        if match is not None:
            unit = "".join(group or "" for group in match.groups())
            seconds = _amount(value, milliseconds=unit.lower().startswith("m"))
            if seconds is not None:
                return seconds
    return None


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name), inner
            yield from _fields(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")


def _amount(value: Any, *, milliseconds: bool) -> float | None:
    """A number, a number as text, a duration as text, or protobuf's seconds and nanos."""
    if isinstance(value, dict) and {"seconds", "nanos"} & set(value):
        parts = [_amount(value.get(name, 0), milliseconds=False) for name in ("seconds", "nanos")]
        return None if None in parts else (parts[0] or 0.0) + (parts[1] or 0.0) / 1e9
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    number = _number(str(value))
    if number is not None:
        return number / 1000 if milliseconds else number
    whole = _WHOLE.fullmatch(value) if isinstance(value, str) else None
    return None if whole is None else _seconds(whole[1])


def _in_prose(text: str) -> float | None:
    match = _PROSE.search(text)
    return None if match is None else _seconds(match[1] or match[2])


def _seconds(duration: str) -> float:
    total = 0.0
    for part in _PART.finditer(duration):
        total += float(part[1]) * _UNITS[str(part.lastgroup)]
    return total
