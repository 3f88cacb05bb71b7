"""One SQLite file: its connection, its lock, its thread, and what its errors mean to a caller.

Everything SQLite is in `state/`; which tables there are is said in `checkpointer` and `sqlite_log`.
"""

import asyncio
import errno
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from loopwright.errors import DatabaseError

P = ParamSpec("P")
R = TypeVar("R")

MEMORY = ":memory:"
BUSY_TIMEOUT = 5.0
"""Seconds that a statement waits for another process's write lock."""


class Database:
    """A SQLite file with one connection per process, opened at first use and safe after a fork.

    WAL and `synchronous=NORMAL`: a committed write survives `kill -9`, not a power loss. The file
    is readable by its owner only. `path` None keeps everything in memory.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = MEMORY if path is None else str(Path(path).expanduser().absolute())
        self.before_close: list[Callable[[], None]] = []
        """What still has to be written when the file is closed."""
        self._reset()
        _follow_forks()
        _databases.add(self)

    def _reset(self) -> None:
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; hold `lock` while using it. Raises DatabaseError."""
        with self.lock:
            if self._closed:
                raise DatabaseError(self.path, "it was closed", "open the agent again")
            if self._connection is None:
                self._connection = _open(self.path)
            return self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; asking does not open one."""
        return self._connection is not None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """A cursor under the lock: committed at the end, rolled back if anything raised."""
        with self.lock, translated(self.path):
            connection = self.connection
            cursor = connection.cursor()
            try:
                yield cursor
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                cursor.close()

    async def hop(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run blocking work in this database's thread; a cancelled caller does not cut it short."""
        executor = self._executor
        if executor is None:  # only then: the lock is held while others write
            with self.lock:
                executor = self._executor = self._executor or ThreadPoolExecutor(
                    1, thread_name_prefix="loopwright-sqlite"
                )
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(executor, lambda: work(*args, **kwargs)))

    async def settled(self) -> None:
        """Return when the hops of this event loop that were begun before have come back to it."""
        await asyncio.sleep(0)  # a task that was just created begins first
        if self._executor is not None:
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


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process: closing one here would remove the parent's locks."""
_following = threading.Event()


def is_open_here(status: os.stat_result) -> bool:
    """Whether a file belongs to a database that this process has open.

    Nothing else may open such a file: when it closes it, the system drops the locks of SQLite's own
    connection, and another process may then remove the log that this one still writes to.
    """
    return any(_is_part(database, status) for database in list(_databases))


def _is_part(database: Database, status: os.stat_result) -> bool:
    if not database.is_open or database.path == MEMORY:
        return False
    for part in ("", "-wal", "-shm"):
        with suppress(OSError):
            if os.path.samestat(os.stat(database.path + part), status):
                return True
    return False


def _follow_forks() -> None:
    if not _following.is_set():
        _following.set()
        os.register_at_fork(after_in_child=_forget_parents)


def _forget_parents() -> None:
    for database in list(_databases):
        database.forget_parent()


def _open(path: str) -> sqlite3.Connection:
    with translated(path):
        if path != MEMORY:
            _create_private(path)
        connection = sqlite3.connect(path, check_same_thread=False, timeout=BUSY_TIMEOUT)
        try:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn the file's write-ahead log on. SQLite does not wait for others who do the same."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _create_private(path: str) -> None:
    """Make folder and file readable by their owner only; an existing file keeps its rights.

    An existing file is not opened: closing it again would remove the locks of every connection to
    it in this process, and another process could then remove the log that they write to.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _may_be_written(path):
            with suppress(FileExistsError):  # another process was faster
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        reason = error.strerror or str(error)
        raise DatabaseError(path, reason, "name a file in a folder that you may write") from error


def _may_be_written(path: str) -> bool:
    """Whether the file is there already. Raises OSError if it is, but cannot be a database."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.path.exists(path):
        return False
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return True


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn sqlite3's errors into DatabaseError with the file and a way out."""
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseError(path, str(error), _remedy(error)) from error


def _remedy(error: sqlite3.Error) -> str:
    text = str(error)
    remedies = {
        "not a database": "name a Loopwright database or a new file",
        "malformed": "restore it from a backup",
        "readonly": "make it writable or name another file",
        "locked": "another program holds it; try again when it is done",
        "full": "free some disk space and try again; nothing acknowledged is lost",
        "unable to open": "check that the folder exists and may be written",
    }
    return next((way for mark, way in remedies.items() if mark in text), "see the message above")
