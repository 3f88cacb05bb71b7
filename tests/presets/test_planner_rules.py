"""The rules of budgets, repeats and plans are the core's: without one of them, vectors fail.

So the suites are driven by what a run calls, and a run shows that a rule is gone.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwright import budgets, calls
from loopwright.nodes import queue_drain, stop_hook
from loopwright.wallet import Verdict, Wallet
from tests.conformance.running import Case
from tests.conformance.suites import SUITES

VECTORS = Path(__file__).parents[1] / "data" / "vectors"

Switch = Callable[[pytest.MonkeyPatch], Any]


async def unchanged(state: Any, run: Any, update: Any) -> Any:
    return dict(update)


async def silent(state: Any, run: Any) -> None:
    return None


class Generous(Wallet):
    """Grants whatever is asked for."""

    def left(self, who: str) -> int:
        return self.total


def without(module: Any, name: str, stand_in: Any) -> Switch:
    return lambda patch: patch.setattr(module, name, stand_in)


RULES: dict[str, tuple[Switch, str]] = {
    "what is not executed": (
        without(calls, "barred", lambda run, call: None),
        "planner_loop/repeat-inside-batch",
    ),
    "the end by what was not executed": (
        without(stop_hook, "barred_by", lambda results: None),
        "planner_loop/budget-ignored-by-model",
    ),
    "the warning": (without(stop_hook, "warn", silent), "planner_loop/graded-warn-at-3"),
    "the note on the budget": (
        without(queue_drain, "cautioned", unchanged),
        "planner_loop/budget-exact-80000",
    ),
    "the following of a plan": (
        without(stop_hook, "followed", lambda *args: ({}, None)),
        "plan_drift/three-idle-drift",
    ),
    "the rules of the wallet": (
        without(budgets, "wallet_of", lambda entries: Verdict(Generous("parent"), {})),
        "budget_wallet/child-cap",
    ),
}


def vector(id: str) -> Case:
    """The vector of this id, from the copies in the repository."""
    suite = id.split("/")[0]
    for one in json.loads((VECTORS / f"{suite}.json").read_text(encoding="utf-8"))["vectors"]:
        if one["id"] == id:
            return Case(id, one["input"], one["expected"])
    raise AssertionError(f"no vector {id}")


async def reasons(id: str) -> Any:
    """Why the vector fails now; what its driver raises is a reason."""
    drive = SUITES[id.split("/")[0]]
    (outcome,) = await asyncio.gather(drive(vector(id)), return_exceptions=True)
    return [repr(outcome)] if isinstance(outcome, BaseException) else outcome


@pytest.mark.anyio
@pytest.mark.parametrize("rule", RULES)
async def test_without_a_rule_of_the_core_a_vector_fails(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, id = RULES[rule]
    assert not await reasons(id)
    switch(monkeypatch)
    assert await reasons(id)
