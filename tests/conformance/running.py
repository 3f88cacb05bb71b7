"""How cases are run and told: one line for each that fails, then the count.

What a case means is its driver's; where cases come from is `vectors` and `reports`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS_PER_CASE = 60
"""A case that takes longer fails; none needs more than a few seconds."""


@dataclass(frozen=True)
class Case:
    """One case: what goes in, and what is expected of it."""

    id: str
    input: dict[str, Any]
    expect: dict[str, Any]


Driver = Callable[[Case], Awaitable[Sequence[str]]]
"""Runs a case and gives the reasons why it fails; none means that it passes."""


def missing(reason: str) -> Driver:
    """The driver of a case that nothing can run: it fails, it is never skipped."""

    async def fail(case: Case) -> list[str]:
        return [reason]

    return fail


def driver_of(name: str, drivers: Mapping[str, Driver], what: str) -> Driver:
    """The driver of a suite or kind; an unknown one fails every case of it."""
    return drivers.get(name) or missing(f"unknown {what} {name!r}: nothing runs it")


def run(cases: Iterable[tuple[Case, Driver]]) -> int:
    """Run the cases one after the other and print what fails; the exit status (0: all passed)."""
    return asyncio.run(_run(cases))


async def _run(cases: Iterable[tuple[Case, Driver]]) -> int:
    count = passed = 0
    for case, driver in cases:
        reasons = await _reasons(case, driver)
        count += 1
        passed += not reasons
        if reasons:
            _say(f"FAIL {case.id}: {'; '.join(reasons)}")
    _say(f"{count} cases, {passed} passed")
    return 0 if count and passed == count else 1


async def _reasons(case: Case, driver: Driver) -> Sequence[str]:
    """Why a case fails. What its driver raises is one reason and does not stop the other cases."""
    work = asyncio.wait_for(driver(case), SECONDS_PER_CASE)
    (outcome,) = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, BaseException):
        return [f"{type(outcome).__name__}: {outcome}"]
    return outcome


def _say(line: str) -> None:
    """Print a line on one line, whatever text is in it."""
    text = line.replace("\n", "\\n").encode("utf-8", "backslashreplace").decode("utf-8")
    print(text, file=sys.stdout, flush=True)


def difference(name: str, actual: Any, expected: Any) -> list[str]:
    """One reason if two values differ (1 and True do), with both cut to a readable length."""
    if same(actual, expected):
        return []
    return [f"{name} is {_short(actual)}, expected {_short(expected)}"]


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: the order of keys is free, true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def unknown_keys(name: str, given: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """One reason for each key that a driver does not know: it might change what is meant."""
    return [f"unknown key {key!r} in {name}" for key in given if key not in set(known)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:390]}... ({len(text)} characters)"
