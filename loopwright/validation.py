"""Checks of what a user sets: each raises ConfigurationError, with the field and what is allowed.

Which field is checked how is said where the fields are, in `settings`.
"""

from collections.abc import Mapping
from dataclasses import fields
from math import inf
from typing import Any

from loopwright.errors import ConfigurationError

LARGEST_WHOLE = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


def require_known(word: str, given: Mapping[str, Any], kind: type[Any]) -> None:
    """Only names of fields; `word` is what the message calls one."""
    unknown = set(given) - {field.name for field in fields(kind)}
    if unknown:
        raise ConfigurationError(f"unknown {word} {min(unknown)!r}", field=min(unknown))


def require_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """One of these words."""
    if value not in allowed:
        raise ConfigurationError(f"{name} is {value!r}: use {' or '.join(allowed)}", field=name)


def require_whole(name: str, value: object, *, at_least: int) -> None:
    """A bool is not a whole number here, and neither is 3.0 (S0-01)."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not at_least <= value <= LARGEST_WHOLE
    ):
        raise ConfigurationError(
            f"{name} is {value!r}: use a whole number of at least {at_least} "
            f"and at most {LARGEST_WHOLE}",
            field=name,
        )


def require_kind(kind: object, name: str, value: object, *, at_least: int) -> None:
    """What the type of a limit says: a switch, a whole number, a number above 0."""
    if kind is bool:
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name} is {value!r}: use True or False", field=name)
    elif kind in (int, int | None):
        require_whole(name, value, at_least=at_least)
    else:
        require_positive(name, value)


def require_positive(name: str, value: object) -> None:
    """A finite number above 0; a bool is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < inf:  # type: ignore[arg-type]
        raise ConfigurationError(f"{name} is {value!r}: use a number above 0", field=name)
