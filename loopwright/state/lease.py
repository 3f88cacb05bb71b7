"""Who may run a thread in this process: at most one run at a time.

The claim is made synchronously, before anything is awaited. What other processes that open the
same file see of it is in `lease_table`.
"""

import asyncio
import threading
import time
import weakref
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from loopwright.errors import BusyThreadError
from loopwright.holder import Holder
from loopwright.signals import AbortSignal
from loopwright.state.database import Database
from loopwright.state.forks import follow_forks
from loopwright.state.owner import this_process


class Register(Protocol):
    """Where other processes see who runs what."""

    def release(self, lease: "Lease") -> None:
        """Strike the lease out and end it, both later: neither blocks nor raises."""
        ...

    async def caught_up(self) -> None:
        """Return when what was to be done later is done."""
        ...

    def require(self, database: Database, lease: "Lease") -> None:
        """Raise LeaseLostError unless the lease is still the thread's, as far as this database
        knows; in the caller's transaction.
        """
        ...


@dataclass(eq=False)
class Lease:
    """The right to run a thread until it is released, and the signal that cancels its run."""

    thread: str
    namespace: str
    owner: "Leases"
    signal: AbortSignal
    claimed: float = field(default_factory=time.time)
    """When it was taken, in seconds since the epoch."""

    run: str = ""
    """The id of the run that it was entered for in a register."""

    register: Register | None = None
    """Where it is entered; None as long as only this process knows of it."""

    _releasing: bool = False
    _released: "Future[None]" = field(default_factory=Future)

    def release(self) -> None:
        """Give the thread back; neither blocks nor raises. A second call does nothing, also when
        someone else has the thread now.
        """
        if self._releasing:
            return
        self._releasing = True
        if self.register is None:
            self.end()
        else:
            self.register.release(self)

    def end(self) -> None:
        """Let this process claim the thread again: the last part of a release."""
        self.owner.drop(self)
        if not self._released.done():
            self._released.set_result(None)

    async def released(self) -> None:
        """Return when the thread was given back, whoever asked for it."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not over.done():
                over.set_result(None)

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(finish)

        self._released.add_done_callback(tell)
        if self._releasing and self.register is not None and not self._released.done():
            await self.register.caught_up()  # by the loop's own way, so that it knows of the wait
        await over


class Leases:
    """The threads that this process runs on one database."""

    def __init__(self) -> None:
        self.forget_parent()
        follow_forks(self)

    def forget_parent(self) -> None:
        """A forked child runs nothing of what its parent runs."""
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Lease] = {}

    def claim(
        self, thread: str, namespace: str = "", *, signal: AbortSignal | None = None
    ) -> Lease:
        """Take the thread or raise BusyThreadError; nothing is disturbed then (S3-11).

        `namespace` tells graphs nested in one thread apart, as LangGraph's checkpoints do. `signal`
        is what cancels the run, a fresh one if None.
        """
        key = (thread, namespace)
        with self._lock:
            if key in self._held:
                me, since = this_process(), self._held[key].claimed
                raise BusyThreadError(thread, Holder(host=me.host, process=me.number, since=since))
            self._held[key] = lease = Lease(thread, namespace, self, signal or AbortSignal())
        return lease

    def abort(self, thread: str, reason: str) -> None:
        """Set the signal of whatever runs the thread."""
        with self._lock:
            held = [lease for lease in self._held.values() if lease.thread == thread]
        for lease in held:
            lease.signal.abort(reason)

    def holds(self, thread: str) -> bool:
        """Whether this process runs the thread itself, not only a graph nested in it."""
        with self._lock:
            return (thread, "") in self._held

    def drop(self, lease: Lease) -> None:
        """Forget this lease, if it is still the one that holds its thread."""
        key = (lease.thread, lease.namespace)
        with self._lock:
            if self._held.get(key) is lease:
                del self._held[key]


_by_file: "weakref.WeakValueDictionary[str, Leases]" = weakref.WeakValueDictionary()
_by_file_lock = threading.Lock()


def leases_of(path: str) -> Leases:
    """The leases that all users of one database file in this process share."""
    with _by_file_lock:
        return _by_file.setdefault(path, Leases())
