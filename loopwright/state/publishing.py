"""Files that are made beside their place and appear there whole, checked and on the disk.

What is in them is their maker's: `backup` and `rewriting`.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from loopwright.errors import ConfigurationError, DatabaseError
from loopwright.state.connecting import translated

PARTS = ("", "-wal", "-shm", "-journal")
"""What SQLite appends to a file's name for the files beside it."""


def require_free(source: Path, target: Path, *, overwrite: bool = False) -> None:
    """Raise unless a file may be put at `target`; nothing is changed.

    ConfigurationError for one that is there already, or is the source itself; DatabaseError for
    one that seems to be open: its log would be taken for the new file's.
    """
    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigurationError(
            f"target {str(target)!r} is the source: name another", field="target"
        )
    if target.exists() and not overwrite:
        message = f"target {str(target)!r} exists: name another file, or overwrite it (--force)"
        raise ConfigurationError(message, field="target")
    if not target.parent.is_dir():
        remedy = "make its folder or name another"
        raise DatabaseError(str(target), "there is no such folder", remedy)
    if any(Path(f"{target}{part}").exists() for part in PARTS[1:]):
        reason = "files of SQLite are beside it, so it is open or was not closed"
        raise DatabaseError(str(target), reason, "close it, or name another file")


def require_sound(path: Path) -> None:
    """Raise DatabaseError if SQLite's quick check finds the closed file damaged.

    Afterwards the file has no log beside it.
    """
    with translated(str(path)), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DatabaseError(str(path), str(found), "`loopwright doctor` tells what is damaged")


def publish(partial: Path, target: Path) -> int:
    """Put a closed file at its place, in one step that also survives a power loss; gives its bytes.

    Raises DatabaseError; the place then holds what it held before.
    """
    try:
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return target.stat().st_size
    except OSError as error:
        reason = error.strerror or str(error)
        raise DatabaseError(str(target), reason, "name a file that you may write") from error


def discard(partial: Path) -> None:
    """Remove a file that was not published, with what SQLite has put beside it."""
    for part in PARTS:
        Path(f"{partial}{part}").unlink(missing_ok=True)
