"""Suite `repair`: a transcript stored by a dead run, loaded by the next run, twice.

The runtime's own marker text and fresh ids are written as the suite writes them before comparing.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from loopwright.state.messages import calls
from loopwright.state.repair import INTERRUPTED
from tests.conformance.loading import Loaded, load
from tests.conformance.pi_messages import from_pi, to_pi
from tests.conformance.running import Case, difference, unknown_keys

MARKER = "<INTERRUPTED>"
REPORT = ("synthesized", "dropped_orphans", "deduplicated", "renamed", "fresh_ids")
INFORMATIVE = "moved"


async def drive(case: Case) -> Sequence[str]:
    """The ledger and the report after the first load; nothing must change in the second."""
    unknown = unknown_keys("input", case.input, ["messages"])
    unknown += unknown_keys("expected", case.expect, ["messages", "report"])
    unknown += unknown_keys(
        "report", case.expect.get("report", {}), [*REPORT, INFORMATIVE, "changed"]
    )
    if unknown:
        return unknown
    stored = [from_pi(row) for row in _replaced(case.input["messages"], {MARKER: INTERRUPTED})]
    before = deepcopy(stored)
    first = await load(stored)
    second = await load(first.messages)
    rows = [to_pi(message) for message in first.messages]
    fresh = _fresh_ids(case.input["messages"], rows)
    return [
        *_expected(case.expect, _replaced(rows, {INTERRUPTED: MARKER, **fresh}), first),
        *difference("the stored messages after loading", stored, before),
        *difference("the ledger after a second load", second.messages, first.messages),
        *difference("the second report", any(second.report.values()), False),
    ]


def _expected(expect: dict[str, Any], rows: Any, loaded: Loaded) -> list[str]:
    """What differs from the expectation. `moved` is informative and not compared."""
    reasons: list[str] = []
    if "messages" in expect:
        reasons += difference("messages", rows, expect["messages"])
    for key, wanted in expect.get("report", {}).items():
        if key == "changed":
            reasons += difference("report.changed", any(loaded.report.values()), wanted)
        elif key in REPORT:
            reasons += difference(f"report.{key}", loaded.report[key], wanted)
    return reasons


def _fresh_ids(given: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The suite's word for every call id that is new, numbered in order of appearance."""
    known = set(_call_ids(given))
    new = [id for id in _call_ids(rows) if id not in known]
    return {id: f"<FRESH-{number}>" for number, id in enumerate(dict.fromkeys(new), start=1)}


def _call_ids(rows: list[dict[str, Any]]) -> list[str]:
    return [call.id for row in rows for call in calls(from_pi(row))]


def _replaced(value: Any, words: dict[str, str]) -> Any:
    """The value with every occurrence of a word in its texts replaced."""
    if isinstance(value, str):
        for word, other in words.items():
            value = value.replace(word, other)
        return value
    if isinstance(value, list):
        return [_replaced(item, words) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, words) for key, item in value.items()}
    return value
