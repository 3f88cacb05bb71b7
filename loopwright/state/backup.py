"""Online backups: a consistent copy of a file that other processes go on writing to.

A copy is a database like any other; how it gets to its place whole is said in `publishing`.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import mkstemp

from loopwright.errors import DatabaseError
from loopwright.state.connecting import read_only, translated
from loopwright.state.publishing import discard, publish, require_free, require_sound

PAGES = 1024
"""Pages that are copied between two calls of `progress`, 4 MB as a rule."""

LEASES = "loopwright_leases"

Progress = Callable[[int, int], None]
"""Told how many pages are copied, and of how many."""


def backup(
    source: str | Path,
    target: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress = lambda done, total: None,
) -> int:
    """Copy a database as it is at this moment to `target`; returns the bytes of the copy.

    Runs may go on meanwhile, in any process; what they commit later is not in the copy. The copy
    is checked, is readable by its owner only, appears at its place whole or not at all, and none
    of its threads is busy. The source is only read. Blocks: call it in a thread beside an event
    loop. Raises DatabaseError, also if the source is damaged, and ConfigurationError for a target
    that exists, unless `overwrite`.
    """
    source, target = Path(source).expanduser().absolute(), Path(target).expanduser().absolute()
    with read_only(source) as connection:
        require_free(source, target, overwrite=overwrite)
        partial = _beside(target)
        try:
            with translated(str(source)):
                connection.execute("BEGIN")  # all pages are of this moment
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            _copy(connection, partial, target, progress)
            require_sound(partial)
            return publish(partial, target)
        finally:
            discard(partial)


def _beside(target: Path) -> Path:
    try:
        handle, name = mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".partial")
    except OSError as error:
        reason, remedy = error.strerror or str(error), "name a file in a folder that you may write"
        raise DatabaseError(str(target), reason, remedy) from error
    os.close(handle)
    return Path(name)


def _copy(connection: sqlite3.Connection, partial: Path, target: Path, progress: Progress) -> None:
    def told(_: int, left: int, total: int) -> None:
        progress(total - left, total)

    with translated(str(target)), closing(sqlite3.connect(partial)) as copy:
        copy.execute("PRAGMA synchronous=OFF")  # it is synced as a whole before it is published
        connection.backup(copy, pages=PAGES, progress=told)
        # Whoever runs a thread of the original does not run it here.
        if copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (LEASES,)).fetchone():
            copy.execute(f"DELETE FROM {LEASES}")
            copy.commit()
