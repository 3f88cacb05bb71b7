"""Suite `budget_wallet`: who gets how much of one wallet, drawn as runs draw.

Runs themselves share one in `tests/test_budgets.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from loopwright.budgets import Purse
from loopwright.state.log import MemoryLog
from loopwright.state.schema import Tree
from tests.conformance.running import Case, difference, unknown_keys

ROOT = "parent"


async def drive(case: Case) -> Sequence[str]:
    """Do the operations in order; compare what each was granted, what is left and who used it."""
    given = case.input
    unknown = unknown_keys("input", given, ["ops", "total", "reserve", "caps"])
    for op in given["ops"]:
        unknown += unknown_keys("an operation", op, ["who", "n", "op"])
        unknown += unknown_keys("op", {op.get("op", "spend"): 0}, ["spend", "refund"])
    unknown += unknown_keys("expected", case.expect, ["granted", "remaining", "used"])
    if unknown:
        return unknown
    root = Purse(MemoryLog(), Tree(thread=ROOT, run="run"), ROOT)
    await root.open(given.get("total", 90), given.get("reserve", 0))
    caps = given.get("caps", {})
    members = {ROOT: root}
    for who in {*caps, *(op["who"] for op in given["ops"])} - {ROOT}:
        members[who] = await root.child(who, cap=caps.get(who))
    granted = [await _done(members[op["who"]], op) for op in given["ops"]]
    wallet = (await root.verdict()).wallet
    assert wallet is not None
    found = {"granted": granted, "remaining": wallet.remaining, "used": _users(wallet.used)}
    wanted = {**case.expect, "used": _users(case.expect.get("used", wallet.used))}
    return [reason for key in wanted for reason in difference(key, found[key], wanted[key])]


def _users(used: Mapping[str, int]) -> dict[str, int]:
    """Who has used something: missing counts as 0."""
    return {who: count for who, count in used.items() if count}


async def _done(purse: Purse, op: dict[str, Any]) -> int:
    act = purse.refund if op.get("op") == "refund" else purse.draw
    return sum([await act() for _ in range(op.get("n", 1))])
