"""How a SQLite file is opened, made or refused, and what SQLite's errors mean to a caller.

Who uses the connection, and how long, is said in `database`.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from loopwright.errors import DatabaseError

R = TypeVar("R")

MEMORY = ":memory:"
BUSY_TIMEOUT = 10.0
"""Seconds that a statement waits for another program's lock before it raises DatabaseError,"""
SLICE = 1.0
"""and seconds that it goes on waiting when nobody waits for it any more."""
PAUSE = 0.005
PAGES = 4_000
"""Length of the write-ahead log, in pages, at which a commit copies it into the file itself."""
LOG_LIMIT = 4 * 1024 * 1024
"""Bytes that the write-ahead log keeps on the disk once its content is in the file."""


class WaitingConnection(sqlite3.Connection):
    """A connection whose statements wait for the locks of other programs, which can be given up."""

    is_left: Callable[[], bool] = staticmethod(lambda: False)
    """Asked while a statement waits: whether nobody waits for it any more."""
    was_refused = False
    """Whether the last statement that had to wait has waited in vain."""

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """While this lasts, no statement waits for a lock."""
        self.was_refused = False
        self.execute("PRAGMA busy_timeout=0")
        try:
            yield
        finally:
            self.execute(f"PRAGMA busy_timeout={int(SLICE * 1000)}")

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _WaitingCursor)

    def execute(self, *given: Any) -> Any:
        return self.cursor().execute(*given)

    def executescript(self, script: str) -> Any:
        return self.cursor().executescript(script)

    def again(self, statement: Callable[[], R], error: sqlite3.OperationalError) -> R:
        """What a statement gives that raised this: it is done again, as long as it may wait, if it
        was for a lock."""
        deadline = time.monotonic() + BUSY_TIMEOUT - SLICE
        while True:
            code = getattr(error, "sqlite_errorcode", 0)
            # Another one has written since this transaction began to read: it cannot go on.
            outdated = code == sqlite3.SQLITE_BUSY_SNAPSHOT and self.in_transaction
            if code & 0xFF != sqlite3.SQLITE_BUSY or outdated:
                raise error
            if time.monotonic() >= deadline or self.is_left():
                self.was_refused = True
                raise error
            time.sleep(PAUSE)  # some locks SQLite itself does not wait for
            try:
                done = statement()
                self.was_refused = False
                return done
            except sqlite3.OperationalError as next_error:
                error = next_error


class _WaitingCursor(sqlite3.Cursor):
    connection: WaitingConnection

    def execute(self, *given: Any) -> Any:
        try:
            return super().execute(*given)
        except sqlite3.OperationalError as error:
            return self.connection.again(lambda: super(_WaitingCursor, self).execute(*given), error)

    def executescript(self, script: str) -> Any:
        try:
            return super().executescript(script)
        except sqlite3.OperationalError as error:
            return self.connection.again(
                lambda: super(_WaitingCursor, self).executescript(script), error
            )


def require_file(path: str | Path) -> None:
    """Raise DatabaseError unless there is a file; nothing is made."""
    if not os.path.exists(path):
        reason, remedy = "there is no such file", "name a database that exists"
        raise DatabaseError(str(path), reason, remedy)


@contextmanager
def read_only(path: str | Path) -> Iterator[sqlite3.Connection]:
    """An existing file, opened so that nothing can be written to it. Raises DatabaseError."""
    require_file(path)
    alone = not os.path.exists(f"{path}-wal")
    with translated(str(path)):
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT)) as connection:
                yield connection
        finally:
            if alone:
                _tidy(path)


def _tidy(path: str | Path) -> None:
    """Let SQLite remove the empty files that a reader, who may not do so, leaves beside one."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def identity(path: str) -> tuple[int, int] | None:
    """Which file the path names now; None if there is none."""
    if path == MEMORY:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_file(path: str, *, create: bool) -> WaitingConnection:
    """A connection for any thread. Raises DatabaseError; a file that is refused stays as it is."""
    with translated(path):
        if not create:
            require_file(path)
        if path != MEMORY:
            _create_private(path)
        connection = sqlite3.connect(
            path, check_same_thread=False, timeout=SLICE, factory=WaitingConnection
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={PAGES}")
            connection.execute(f"PRAGMA journal_size_limit={LOG_LIMIT}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


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
        "malformed": "`loopwright doctor` tells what is damaged; restore a backup",
        "disk I/O": "check the disk and its free space and try again; nothing acknowledged is lost",
        "readonly": "make it writable or name another file",
        "locked": "another program holds it; try again when it is done",
        "full": "free some disk space and try again; nothing acknowledged is lost",
        "no such column: task_path": "open it once with an agent, which updates its tables",
        "unable to open": "check that the folder exists and may be written",
    }
    return next((way for mark, way in remedies.items() if mark in text), "see the message above")
