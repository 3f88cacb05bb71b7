"""One SQLite file: its connection, its lock and its thread.

How it is opened is said in `connecting`, which tables there are in `checkpointer` and `sqlite_log`.
"""

import asyncio
import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from loopwright.errors import DatabaseError
from loopwright.state.connecting import MEMORY, WaitingConnection, identity, open_file, translated

PATIENCE = 0.01
"""Seconds for which an event loop waits for this process to be done with the connection."""
COPY_EVERY = 200
"""Transactions in event loops after which the write-ahead log is copied into the file."""

P = ParamSpec("P")
R = TypeVar("R")


class Database:
    """A SQLite file with one connection per process, opened at first use and safe after a fork.

    WAL and `synchronous=NORMAL`: a committed write survives `kill -9`, not a power loss. The file
    is readable by its owner only. `path` None keeps everything in memory. With `create` False a
    file that is not there is a DatabaseError. One that is moved or deleted while it is open is one
    too: nothing more is written to it, so nothing is acknowledged that nobody can find.
    """

    def __init__(self, path: str | Path | None = None, *, create: bool = True) -> None:
        self.path = MEMORY if path is None else str(Path(path).expanduser().absolute())
        self._create = create
        self.before_close: list[Callable[[], None]] = []
        """What still has to be written when the file is closed."""
        self._reset()
        _follow_forks()
        _databases.add(self)

    def _reset(self) -> None:
        self.lock, self._starting = threading.RLock(), threading.Lock()
        self._connection: WaitingConnection | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False
        self._identity: tuple[int, int] | None = None
        self._waiters = threading.local()
        self._jobs: set[Future[Any] | asyncio.Future[Any]] = set()
        """What is still to be done in the thread,"""
        self._abandoned: set[asyncio.Future[Any]] = set()
        """and what of it nobody waits for any more."""
        self._transactions = 0

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; hold `lock` while using it. Raises DatabaseError."""
        with self.lock:
            if self._closed:
                raise DatabaseError(self.path, "it was closed", "open the agent again")
            if self._connection is None:
                self._connection = open_file(self.path, create=self._create)
                self._connection.is_left = self._is_left
                self._identity = identity(self.path)
            elif identity(self.path) != self._identity:
                reason = "it was moved or deleted while it was open"
                raise DatabaseError(self.path, reason, "put it back, or open the agent again")
            return self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; asking does not open one."""
        return self._connection is not None

    @contextmanager
    def transaction(self, *, full: bool = False) -> Iterator[sqlite3.Cursor]:
        """A cursor under the lock: committed at the end, rolled back if anything raised.

        Within another one of the same caller it joins that one, which then decides for both.

        `full` waits until the disk has what is committed, and with it all that was committed
        before: it survives a power loss too.
        """
        with self.lock, translated(self.path), _synchronised(self.connection, full) as connection:
            cursor = connection.cursor()
            joined = connection.in_transaction
            try:
                yield cursor
                if not joined:
                    connection.commit()
            except BaseException:
                if not joined:
                    connection.rollback()
                raise
            finally:
                cursor.close()

    async def here(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Short work in one transaction: done at once if nothing has to be waited for, which costs
        a tenth of a hop; else in a hop.

        It is done again from its beginning if the file turns out to be locked, so before its first
        statement it may change nothing. Where a server forbids blocking calls, it always hops.
        """
        if self._is_free() and self.lock.acquire(timeout=PATIENCE):
            try:
                connection = self._connection
                if connection is not None:  # not closed meanwhile
                    self._waiters.is_left = lambda: True
                    with connection.impatient():
                        return work(*args, **kwargs)
            except DatabaseError:
                if connection is None or not connection.was_refused:
                    raise
            finally:
                self._waiters.is_left = None
                self.lock.release()
                self._copy_log_in_time()
        return await self.hop(work, *args, **kwargs)

    def _is_free(self) -> bool:
        """Whether work may be done in the event loop: nothing that was begun before is behind it,
        and nobody watches for blocking calls."""
        is_open = self._connection is not None and not self._closed
        return is_open and not self._abandoned and "blockbuster" not in sys.modules

    def _copy_log_in_time(self) -> None:
        """Have the write-ahead log copied into the file by the thread: a commit that does it waits
        for the disk."""
        self._transactions += 1
        if self._transactions % COPY_EVERY == 0:
            with suppress(RuntimeError):  # the file is being closed, which copies the log too
                self.submit(self._copy_log)

    def _copy_log(self) -> None:
        with self.lock, suppress(DatabaseError, sqlite3.Error):
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    async def hop(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run blocking work in this database's thread; a cancelled caller does not cut it short,
        but for one thing: it does not go on waiting for the lock of another program.
        """
        loop, left = asyncio.get_running_loop(), threading.Event()

        def done() -> R:
            self._waiters.is_left = left.is_set
            return work(*args, **kwargs)

        job = loop.run_in_executor(self._thread, done)
        self._began(job)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            left.set()
            self._abandoned.add(job)
            job.add_done_callback(self._abandoned.discard)
            job.add_done_callback(_hear)
            raise

    def submit(self, work: Callable[[], None]) -> None:
        """Do blocking work that raises nothing in this database's thread, some time later, behind
        all that was begun there before. It does not wait for a lock that was just waited for in
        vain.
        """

        def done() -> None:
            connection = self._connection
            self._waiters.is_left = lambda: connection is not None and connection.was_refused
            work()

        self._began(self._thread.submit(done))

    def _began(self, job: "Future[Any] | asyncio.Future[Any]") -> None:
        """Remember that there is something to be done in the thread."""
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _is_left(self) -> bool:
        """Whether nobody waits for what this thread does."""
        asked: Callable[[], bool] | None = getattr(self._waiters, "is_left", None)
        return asked is not None and asked()

    @property
    def _thread(self) -> ThreadPoolExecutor:
        """The one thread of this database."""
        executor = self._executor
        if executor is None:
            with self._starting:  # not `lock`, which others hold while they write
                executor = self._executor = self._executor or ThreadPoolExecutor(
                    1, thread_name_prefix="loopwright-sqlite"
                )
        return executor

    async def settled(self) -> None:
        """Return when the hops of this event loop that were begun before have come back to it."""
        await asyncio.sleep(0)  # a task that was just created begins first
        if self._jobs:
            await self.hop(lambda: None)

    def close(self) -> None:
        """Finish what is under way and close the file. May be called twice."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        try:
            for finish in self.before_close if not self._closed else ():
                finish()
        finally:
            with self.lock:
                connection, self._connection, self._closed = self._connection, None, True
            if connection is not None:
                connection.close()

    def forget_parent(self) -> None:
        """In a forked child: leave the parent's connection alone, unclosed, and open an own one.

        What is kept in memory is the child's own copy already.
        """
        connection, closed = self._connection, self._closed
        self._reset()
        self._closed = closed
        if self.path == MEMORY:
            self._connection = connection
        elif connection is not None:
            _inherited.append(connection)


def _hear(job: "asyncio.Future[R]") -> None:
    """Nobody waits for it any more, so asyncio's log is not told either how it ended."""
    if not job.cancelled():
        job.exception()


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process: closing one here would remove the parent's locks."""
_following = threading.Event()


def is_open_here(status: os.stat_result) -> bool:
    """Whether a file belongs to a database that this process has open.

    Nothing else may open such a file: when it closes it, the system drops the locks of SQLite's own
    connection, and another process may then remove the log that this one still writes to.
    """
    return (status.st_dev, status.st_ino) in open_files()


def open_files() -> set[tuple[int, int]]:
    """Device and inode of each file of the databases that this process has open."""
    found = set()
    for database in list(_databases):
        for part in ("", "-wal", "-shm") if database.is_open and database.path != MEMORY else ():
            with suppress(OSError):
                status = os.stat(database.path + part)
                found.add((status.st_dev, status.st_ino))
    return found


def _follow_forks() -> None:
    if not _following.is_set():
        _following.set()
        os.register_at_fork(after_in_child=_forget_parents)


def _forget_parents() -> None:
    for database in list(_databases):
        database.forget_parent()


@contextmanager
def _synchronised(connection: sqlite3.Connection, full: bool) -> Iterator[sqlite3.Connection]:
    """The connection, for the length of a transaction with `synchronous=FULL` if that is wanted."""
    if not full:
        yield connection
        return
    (before,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.execute("PRAGMA synchronous=FULL")
    try:
        yield connection
    finally:
        connection.execute(f"PRAGMA synchronous={before}")
