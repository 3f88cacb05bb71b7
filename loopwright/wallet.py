"""The wallet of model calls that a tree of runs shares: its rules, as a fold over what was done.

Pure; where the entries are kept and when a run draws is in `budgets`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Wallet:
    """One wallet per tree (S3-02). `root` is whose reserve it is; every other name is a child.

    A unit is granted while the wallet is not empty. A child gets none of the last `reserve` units
    and no more than its cap in `caps`; without one it has no bound of its own. What is left never
    grows above `total` and never falls below 0.
    """

    root: str
    total: int = 90
    reserve: int = 0
    caps: dict[str, int] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    """Units that each has taken and kept."""

    @property
    def remaining(self) -> int:
        """What nobody has taken."""
        return self.total - self.used.total()

    def left(self, who: str) -> int:
        """The units that `who` would get now, if nobody else took any."""
        if who == self.root:
            return self.remaining
        own = self.caps[who] - self.used[who] if who in self.caps else self.remaining
        return max(0, min(own, self.remaining - self.reserve))

    def spend(self, who: str) -> bool:
        """Take one unit; False if none is left for `who`."""
        if self.left(who) <= 0:
            return False
        self.used[who] += 1
        return True

    def refund(self, who: str) -> bool:
        """Give one unit back, for a call that was never sent; False if `who` holds none."""
        if self.used[who] <= 0:
            return False
        self.used[who] -= 1
        return True

    def share(self, children: int) -> int:
        """A fair part for each of so many children that run side by side (K6)."""
        return max(0, self.remaining - self.reserve) // max(1, children)


@dataclass(frozen=True)
class Verdict:
    """A wallet after a number of entries, and whether each of them was granted, by its number."""

    wallet: Wallet | None
    granted: Mapping[int, bool]


def wallet_of(entries: Iterable[tuple[int, Mapping[str, Any]]]) -> Verdict:
    """The wallet that numbered entries have made, in the order of their numbers.

    The first entry opens it: `{"op": "open", "who", "total", "reserve"}`. Later ones are `{"op":
    "cap", "who", "cap"}`, `{"op": "spend", "who"}` and `{"op": "refund", "who"}`. Since the order
    decides who gets the last unit, all who read the same entries agree on it.
    """
    wallet: Wallet | None = None
    granted: dict[int, bool] = {}
    for number, entry in entries:
        op, who = entry["op"], entry["who"]
        if wallet is None:
            wallet = Wallet(who, entry["total"], entry["reserve"]) if op == "open" else None
        elif op == "cap":
            wallet.caps[who] = min(entry["cap"], wallet.caps.get(who, entry["cap"]))
        elif op == "spend":
            granted[number] = wallet.spend(who)
        elif op == "refund":
            granted[number] = wallet.refund(who)
    return Verdict(wallet, granted)
