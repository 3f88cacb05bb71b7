"""The rules of a bounded run are the core's: with one of them switched off, its vectors fail."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopwright import attempts, performing
from loopwright.nodes import load, stop_hook
from loopwright.presets.course import loop
from loopwright.providers import protocol
from loopwright.settings import Settings
from tests.conformance.builders import expand
from tests.conformance.running import Case
from tests.conformance.suites import SUITES

VECTORS = Path(__file__).parents[1] / "data" / "vectors"

Switch = Callable[[pytest.MonkeyPatch], Any]


def nothing(*args: Any) -> None:
    """A rule that is switched off."""


def settings(**changes: Any) -> Switch:
    """The preset without one of its policies."""

    def switch(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(loop, "SETTINGS", replace(loop.SETTINGS, **changes))

    return switch


async def unchecked(source: Any, *args: Any) -> Any:
    async for event in source:
        yield event


RULES: dict[str, tuple[Switch, str]] = {
    "the turn limit": (
        lambda patch: patch.setattr(stop_hook, "reached", nothing),
        "loop000_runs/quoted-max-steps-1-three-calls",
    ),
    "the check of an answer": (
        lambda patch: patch.setattr(attempts, "checked", unchecked),
        "loop000_runs/text-mismatch",
    ),
    "the bounds of arguments": (
        lambda patch: patch.setattr(protocol, "violations", lambda *args: {}),
        "loop000_runs/args-over-limit-before-event-and-tool",
    ),
    "the refusal of a transcript": (
        lambda patch: patch.setattr(load, "require_linked", nothing),
        "transcript_validation/orphan",
    ),
    "the cut of a request": (
        lambda patch: patch.setattr(attempts, "until_cut", lambda run, source: source),
        "loop000_runs/cancel-with-final-in-hand-not-appended",
    ),
    "the cut behind a batch": (
        lambda patch: patch.setattr(stop_hook, "is_cut", lambda run: False),
        "loop000_runs/cancel-after-last-tool-beats-max-steps",
    ),
    "policy cut": (
        settings(cancel_policy="record"),
        "loop000_runs/cancel-with-final-in-hand-not-appended",
    ),
    "policy strict": (settings(protocol="lenient"), "loop000_runs/stop-with-calls"),
    "policy sequential": (
        settings(tool_execution="parallel"),
        "loop000_runs/mixed-batch-error-in-middle",
    ),
    "the cut of a batch": (
        lambda patch: patch.setattr(performing, "uncut", lambda run, work: work),
        "loop000_runs/cancel-while-second-tool-runs",
    ),
    "the offset of request ids": (
        lambda patch: patch.setattr(loop, "_settings", without_offset(loop._settings)),
        "loop000_runs/offset-request-ids",
    ),
}


def without_offset(make: Callable[[Any, Any], Settings]) -> Callable[[Any, Any], Settings]:
    return lambda max_steps, start: make(max_steps, 0)


def vector(id: str) -> Case:
    """The vector of this id, from the copies in the repository."""
    suite = id.split("/")[0]
    for one in json.loads((VECTORS / f"{suite}.json").read_text(encoding="utf-8"))["vectors"]:
        if one["id"] == id:
            return Case(id, expand(one["input"]), expand(one["expected"]))
    raise AssertionError(f"no vector {id}")


async def reasons(id: str) -> Any:
    """Why the vector fails now; a run that hangs is one reason."""
    drive = SUITES[id.split("/")[0]]
    try:
        return await asyncio.wait_for(drive(vector(id)), 2)
    except TimeoutError:
        return ["it hangs"]


@pytest.mark.anyio
@pytest.mark.parametrize("rule", RULES)
async def test_without_a_rule_of_the_core_a_vector_fails(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, id = RULES[rule]
    assert not await reasons(id)
    switch(monkeypatch)
    assert await reasons(id)
