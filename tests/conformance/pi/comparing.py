"""Which parts of two traces must be equal, and the first difference between them.

The rules are those of the traces' own `compare.py`, only that true is never 1.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.conformance.pi.shorthand import Json

UNORDERED = ("tryPrompt:", "tryContinue:", "tryReset:")
"""Outcomes that are compared as a sorted list."""

UNCOMPARED = ("step:", "step-done:", "settled:", "idle:", "tool:", *UNORDERED)
"""Lines whose place in the log comes from another language's scheduler."""


def _steps(trace: Json) -> Any:
    return [{key: step.get(key) for key in ("do", "ok", "error")} for step in trace["steps"]]


def _log(trace: Json) -> Any:
    return [line for line in trace["log"] if not line.startswith(UNCOMPARED)]


def _tries(trace: Json) -> Any:
    return sorted(line for line in trace["log"] if line.startswith(UNORDERED))


def _part(name: str) -> Callable[[Json], Any]:
    return lambda trace: trace.get(name)


PARTS: dict[str, Callable[[Json], Any]] = {
    **{name: _part(name) for name in ("events", "requests", "toolRuns", "hooks")},
    "steps": _steps,
    **{name: _part(name) for name in ("transcript", "contextMessages", "final")},
    "log": _log,
    "tries": _tries,
}


def difference(golden: Json, trace: Json, *, is_raw: bool) -> str | None:
    """The first part that differs, with the first place in it; None if the traces are equal."""
    for name, part in PARTS.items():
        if is_raw and name == "log":
            continue  # the producer runs ahead of the consumer by an unspecified amount
        want, got = part(golden), part(trace)
        if not same(want, got):
            return f"{name}: {_first(want, got)}"
    return None


def same(want: Any, got: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, but not true."""
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(same(want[key], got[key]) for key in want)
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(same, want, got))
    return bool(want == got)


def _first(want: Any, got: Any) -> str:
    if not isinstance(want, list) or not isinstance(got, list):
        return f"want {_short(want)} got {_short(got)}"
    for index, (one, other) in enumerate(zip(want, got, strict=False)):
        if not same(one, other):
            return f"[{index}] want {_short(one)} got {_short(other)}"
    return f"length want {len(want)} got {len(got)}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:300]
