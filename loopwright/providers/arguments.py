"""The text of a call's arguments: the strict way from what a model wrote to what a tool may get.

Nothing is completed or guessed. Whether the arguments fit a tool's schema is checked with the tool.
"""

import json
import math
import re
from typing import Any, Literal

from loopwright.text import clean_json

ArgumentsFault = Literal["ARGUMENTS_TRUNCATED", "ARGUMENTS_INVALID_JSON", "ARGUMENTS_NOT_OBJECT"]

_WHOLE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LARGEST_INTEGER = 2**63 - 1
"""LangGraph's serialiser refuses larger ones, so a stored call could not be loaded."""


class ArgumentsError(ValueError):
    """The text is not the JSON of one whole object: `fault` is the kind, the message the reason."""

    def __init__(self, fault: ArgumentsFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments that the text spells, ready to be stored: no lone surrogate, no huge integer.

    Empty or blank text and `null` mean no arguments. A JSON string that itself spells an object is
    unwrapped, once. Raw control characters in strings are let through; NaN and a key given twice
    are not. Raises ArgumentsError for everything else.
    """
    value = _value(text) if text.strip() else None
    if isinstance(value, str):
        value = _unwrapped(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise ArgumentsError("ARGUMENTS_NOT_OBJECT", f"the arguments are a {kind}, not an object")
    return value


def parse_object(text: str) -> dict[str, Any]:
    """The object that the text of an answer spells; unlike arguments it must be there, bare.

    Raises ArgumentsError for everything else.
    """
    value = _value(text, "the answer is")
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise ArgumentsError("ARGUMENTS_NOT_OBJECT", f"the answer is a {kind}, not an object")
    return value


def is_whole(text: str) -> bool:
    """Whether the text is one whole JSON object, so that nothing can follow it."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(_value(text), dict)
    except ArgumentsError:
        return False


def _unwrapped(text: str) -> Any:
    """The object that a string spells, or the string itself."""
    try:
        inner = _value(text)
    except ArgumentsError:
        return text
    return inner if isinstance(inner, dict) else text


def _value(text: str, what: str = "the arguments are") -> Any:
    try:
        value = json.loads(
            text,
            strict=False,
            object_pairs_hook=_object,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_integer,
        )
        return clean_json(value)
    except RecursionError:
        raise ArgumentsError("ARGUMENTS_INVALID_JSON", f"{what} nested too deeply") from None
    except ValueError as error:
        if _is_cut(text):
            raise ArgumentsError(
                "ARGUMENTS_TRUNCATED", f"{what} incomplete: the JSON was cut off"
            ) from None
        raise ArgumentsError("ARGUMENTS_INVALID_JSON", f"{what} not valid JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is given twice in one object")
    return made


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _integer(text: str) -> int:
    # The length first: Python refuses to convert thousands of digits with words of its own.
    if len(text) > 20 or abs(int(text)) > _LARGEST_INTEGER:
        raise ValueError(f"the integer {text[:40]} is too large")
    return int(text)


def _is_cut(text: str) -> bool:
    """Whether the text ends inside a string or with brackets open."""
    outside = _WHOLE_STRING.sub("", text)
    opened = sum(map(outside.count, "{[")) - sum(map(outside.count, "}]"))
    return '"' in outside or opened > 0
