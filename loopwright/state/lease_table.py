"""Leases as rows of a database file: one run of a thread over all processes that open the file.

The claim within a process is `lease`'s; which process is alive is found out in `owner`.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig

from loopwright.clock import Clock, SystemClock
from loopwright.errors import BusyThreadError, DatabaseError, LeaseLostError
from loopwright.failpoints import reach
from loopwright.holder import Holder
from loopwright.state.aborts import AbortRequests
from loopwright.state.connecting import MEMORY
from loopwright.state.database import Database
from loopwright.state.forks import follow_forks
from loopwright.state.lease import Lease, Leases, leases_of
from loopwright.state.owner import Process, this_process
from loopwright.state.reading import place_of
from loopwright.state.sqlite_log import SqliteLog
from loopwright.state.watch import Watch

EXPIRY = 30.0
"""Seconds after which a lease that was not renewed is free, also if its process may be alive."""

LEASE_KEY = "__loopwright_lease"
"""Where the entrance puts a run's lease in the config. Such keys are never stored."""

_HOLDERS = "SELECT run, machine, host, process, began, claimed, expires FROM loopwright_leases"
_HOLDER = f"{_HOLDERS} WHERE thread = ? AND namespace = ?"
_FORGET = "DELETE FROM loopwright_leases WHERE thread = ?"
_TAKE = (
    "INSERT OR REPLACE INTO loopwright_leases"
    " (thread, namespace, run, machine, host, process, began, claimed, expires)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# A forked child has the ids of its parent's runs, but not its number.
_OWN = " WHERE thread = ? AND namespace = ? AND run = ? AND process = ?"
_HOLDS = f"SELECT 1 FROM loopwright_leases{_OWN}"
_RENEW = f"UPDATE loopwright_leases SET expires = ?{_OWN}"
_RELEASE = f"DELETE FROM loopwright_leases{_OWN}"

_running: set[str] = set()
"""The runs for which this process holds a row: another row of its own is a remain."""


class LeaseTable:
    """The leases that this process holds in a file: taken, renewed in time, and given back.

    While it holds one, a thread renews it at a third of `expiry`, and hears requests to abort.
    `flush` commits what of a thread still waits to be written. A database in memory has no rows:
    no other process can see it.
    """

    def __init__(
        self,
        database: Database,
        flush: Callable[[str], None] = lambda thread: None,
        *,
        expiry: float = EXPIRY,
        clock: Clock | None = None,
    ) -> None:
        self.database, self.expiry, self._flush = database, expiry, flush
        self.local = Leases() if database.path == MEMORY else leases_of(database.path)
        self.clock = clock or SystemClock()
        self._aborts = AbortRequests(SqliteLog(database))
        self._begin()
        follow_forks(self)
        database.before_close.append(self.close)

    def _begin(self) -> None:
        self._held: dict[str, Lease] = {}
        self._renewed = 0.0
        self._watch = Watch(self._look, lambda: bool(self._held))

    def forget_parent(self) -> None:
        """A forked child holds nothing of what its parent holds, and watches nothing."""
        self._begin()

    async def take(self, lease: Lease, run: str) -> None:
        """Enter a claimed lease for a run, in one hop. Raises BusyThreadError and DatabaseError.

        A cancelled caller must release the lease too: the row may have been written.
        """
        if self.database.path != MEMORY:
            lease.run, lease.register = run, self
            await self.database.settled()  # the one before it may still be given back
            await self.database.here(self._take, lease)

    def _take(self, lease: Lease) -> None:
        _running.add(lease.run)
        now = self.clock.now()
        try:
            with self.database.transaction() as cursor:
                cursor.execute("BEGIN IMMEDIATE")
                row = cursor.execute(_HOLDER, _place(lease)).fetchone()
                holder = row and _live(row, now)
                if holder is not None:
                    raise BusyThreadError(lease.thread, holder)
                me = this_process()
                owner = (me.machine, me.host, me.number, me.began)
                times = (lease.claimed, now + self.expiry)
                cursor.execute(_TAKE, (*_place(lease), lease.run, *owner, *times))
        except BaseException:
            _running.discard(lease.run)
            raise
        reach("lease")
        self._renewed = self._renewed if self._held else now
        self._held[lease.run] = lease
        self._watch.notice()

    def require_idle(self, thread: str) -> None:
        """Raise BusyThreadError if any process runs the thread; in the caller's transaction, so
        that nobody begins before it is over. A run that is silent has lost its lease then."""
        with self.database.transaction() as cursor:
            holder = self._holder(cursor, thread)
            if holder is not None:
                raise BusyThreadError(thread, holder)
            cursor.execute(_FORGET, (thread,))

    def is_held(self, thread: str) -> bool:
        """Whether any process runs the thread, as far as the caller's transaction sees."""
        with self.database.transaction() as cursor:
            return self.local.holds(thread) or self._holder(cursor, thread) is not None

    def _holder(self, cursor: sqlite3.Cursor, thread: str) -> Holder | None:
        rows = cursor.execute(f"{_HOLDERS} WHERE thread = ?", (thread,)).fetchall()
        live = (_live(row, self.clock.now()) for row in rows)
        return next(filter(None, live), None)

    def release(self, lease: Lease) -> None:
        """Give the thread back behind all that was begun in the database's thread."""
        try:
            self.database.submit(lambda: self._release(lease))
        except RuntimeError:  # its thread has ended: the file, or the process, is being closed
            self._release(lease)

    async def caught_up(self) -> None:
        """Return when the releases that were asked for are done."""
        await self.database.settled()

    def _release(self, lease: Lease) -> None:
        try:
            # A row that cannot be deleted, on a full disk, is not renewed: it is free when it
            # expires, and for this process at once. The run has its result all the same.
            with suppress(DatabaseError):
                if self._held.pop(lease.run, None) is not None:
                    self._flush(lease.thread)
                    with self.database.transaction() as cursor:
                        cursor.execute(_RELEASE, _own(lease))
        finally:
            _running.discard(lease.run)
            lease.end()

    def require(self, database: Database, lease: Lease) -> None:
        """Raise LeaseLostError unless the lease is still the thread's; in the caller's transaction.

        Another database than this table's knows nothing of it.
        """
        if database is self.database:
            with database.transaction() as cursor:
                require(cursor, lease)

    def lease_of(self, config: RunnableConfig) -> Lease | None:
        """The lease under which a config's own thread is written here, if it has a row."""
        lease = config["configurable"].get(LEASE_KEY)
        if isinstance(lease, Lease) and lease.register is self:
            return lease if place_of(config) == _place(lease) else None
        return None

    def close(self) -> None:
        """Stop watching, and give back what is still held: nothing more can be written here."""
        self._watch.close()
        for lease in list(self._held.values()):
            self._release(lease)

    def _look(self) -> None:
        with suppress(DatabaseError):  # busy, or closed: it is tried again, or nobody needs it
            self._aborts.deliver(list(self._held.values()))
            now = self.clock.now()
            if not 0 <= now - self._renewed < self.expiry / 3:
                self._renew(list(self._held.values()), now + self.expiry)
                self._renewed = now

    def _renew(self, leases: list[Lease], expires: float) -> None:
        lost = []
        with self.database.transaction() as cursor:
            for lease in leases:
                cursor.execute(_RENEW, (expires, *_own(lease)))
                lost += [] if cursor.rowcount else [lease]
        for lease in lost:
            if lease.run in self._held:  # not one that was given back meanwhile
                lease.signal.abort("the thread was taken over by another process")


def holds(cursor: sqlite3.Cursor, lease: Lease | None) -> bool:
    """Whether a lease is still the thread's; True without one."""
    return lease is None or cursor.execute(_HOLDS, _own(lease)).fetchone() is not None


def require(cursor: sqlite3.Cursor, lease: Lease | None) -> None:
    """Raise LeaseLostError unless the lease is still the thread's: in the transaction that writes.

    An expired one that nobody has taken over still is.
    """
    if not holds(cursor, lease) and lease is not None:
        raise LeaseLostError(lease.thread, lease.run)


def _live(row: tuple[Any, ...], now: float) -> Holder | None:
    """Whose a row is, if its run may go on."""
    run, machine, host, number, began, since, expires = row
    process = Process(machine, host, number, began)
    remains = process == this_process() and run not in _running
    if expires <= now or remains or process.is_gone():
        return None
    return Holder(host=host, process=number, since=since, expires=expires)


def _place(lease: Lease) -> tuple[str, str]:
    return lease.thread, lease.namespace


def _own(lease: Lease) -> tuple[str, str, str, int]:
    return lease.thread, lease.namespace, lease.run, os.getpid()
