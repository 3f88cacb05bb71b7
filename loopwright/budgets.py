"""How a run pays for its model calls from the wallet of its tree, and who else may.

What a wallet grants is said in `wallet`. Its entries are in the log of the thread that began the
tree, so a run that carries on after a restart, and a child in another process, see what is left.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from loopwright.errors import ConfigurationError
from loopwright.events import Budget
from loopwright.runs import Run
from loopwright.state.log import Log
from loopwright.state.schema import AgentState, Tree
from loopwright.wallet import Verdict, Wallet, wallet_of

T = TypeVar("T")

KIND = "wallet"
"""The kind of the entries in the log."""


@dataclass(frozen=True)
class Purse:
    """The access of one member of a tree to their wallet; `who` is the id of its thread."""

    log: Log
    tree: Tree
    who: str

    async def open(self, total: int, reserve: int = 0) -> Wallet:
        """The wallet, which its root begins with so much if it was not begun yet."""
        wallet = (await self.verdict()).wallet
        if wallet is None:
            await self._append("open", total=total, reserve=reserve)
            wallet = (await self.verdict()).wallet
        assert wallet is not None
        return wallet

    async def draw(self) -> bool:
        """Take one unit for a call that is about to be sent; False if none is left. Of several who
        draw at once, in whatever process, no more get one than there are.
        """
        number = await self._append("spend")
        return (await self.verdict()).granted.get(number, False)

    async def refund(self) -> bool:
        """Give back the unit of a call that was never sent; False if there is none to give back."""
        number = await self._append("refund")
        return (await self.verdict()).granted.get(number, False)

    async def left(self) -> int | None:
        """The units that are there for this member now; None before the wallet was begun."""
        wallet = (await self.verdict()).wallet
        return None if wallet is None else wallet.left(self.who)

    async def verdict(self) -> Verdict:
        """The wallet as it stands, and which entries were granted."""
        entries = await self.log.poll(self.tree["thread"], [KIND])
        own = [(e.sequence, e.body) for e in entries if e.body["wallet"] == self.tree["run"]]
        return wallet_of(own)

    async def child(self, who: str, *, cap: int | None = None) -> "Purse":
        """The access of a member that this one starts; `cap` bounds all that it takes."""
        purse = replace(self, who=who)
        if cap is not None:
            await purse._append("cap", cap=cap)
        return purse

    async def children(self, whos: Sequence[str], *, cap: int) -> "list[Purse]":
        """The accesses of members that go on side by side: each may take a fair share of what is
        left now, so that none starves the others (K6).
        """
        wallet = (await self.verdict()).wallet
        if wallet is None:
            return [await self.child(who, cap=cap) for who in whos]
        fair = wallet.share(len(whos))
        return [await self.child(who, cap=min(cap, wallet.used[who] + fair)) for who in whos]

    async def _append(self, op: str, **more: int) -> int:
        body = {"wallet": self.tree["run"], "op": op, "who": self.who, **more}
        (sequence,) = await self.log.commit(self.tree["thread"], KIND, [body])
        return sequence


def purse_of(state: AgentState, run: Run) -> Purse | None:
    """The run's access to the wallet of its tree; None if there is none."""
    tree = state["run"].get("tree") or Tree(thread=run.thread, run=run.id)
    if run.settings.limits.calls is None and tree["thread"] == run.thread:
        return None
    return Purse(run.dependencies.log, tree, run.thread)


async def _opened(state: AgentState, run: Run) -> Purse | None:
    """The same; the run that begins the tree has begun its wallet with it."""
    purse, limits = purse_of(state, run), run.settings.limits
    if purse is not None and limits.calls is not None and purse.who == purse.tree["thread"]:
        await purse.open(limits.calls, limits.reserved_calls)
    return purse


async def drawn(state: AgentState, run: Run) -> bool:
    """Pay for the next request of the run; False if no unit is left. A run that is aborted sends
    none and pays for none.
    """
    purse = None if run.signal.aborted else await _opened(state, run)
    if purse is None:
        return True
    granted = await purse.draw()
    left = run.watch.calls_left = await purse.left() or 0
    if granted:
        await run.emit(Budget(name="calls", left=left))
    return granted


async def refunding(state: AgentState, run: Run, answer: Awaitable[T]) -> T:
    """The answer that was paid for; the unit is given back if the request could not be sent."""
    aborted = run.signal.aborted
    try:
        return await answer
    except ConfigurationError:  # no server was asked: there is no key, or no such model
        purse = purse_of(state, run)
        if purse is not None and not aborted:
            await purse.refund()
        raise


async def recount(state: AgentState, run: Run) -> None:
    """Note what is left for the run: others of its tree may have drawn while its tools ran."""
    purse = purse_of(state, run)
    if purse is not None:
        run.watch.calls_left = await purse.left()


async def delegated(state: AgentState, run: Run, threads: Sequence[str]) -> Tree | None:
    """The tree that runs on these threads join as children of this run, several of them side by
    side: it is to be their `Run.tree`. None if they pay for themselves (`isolated`, or no wallet).
    """
    purse = None if run.settings.child_wallet == "isolated" else await _opened(state, run)
    if purse is None:
        return None
    await purse.children(threads, cap=run.settings.limits.child_calls)
    return purse.tree
