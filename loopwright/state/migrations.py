"""The numbered migrations of our tables, applied when a file is opened; a newer schema is refused.

LangGraph's own two tables are made by its saver.
"""

import sqlite3

from loopwright.errors import DatabaseError
from loopwright.state.database import Database

LINEAR = (
    # A list channel is a branch of rows. A branch shares its parent's rows below `fork`.
    # Numbers are never used twice: another process may still remember a deleted branch.
    """
    CREATE TABLE loopwright_branches (
        branch INTEGER PRIMARY KEY AUTOINCREMENT,
        thread TEXT NOT NULL,
        namespace TEXT NOT NULL,
        channel TEXT NOT NULL,
        parent INTEGER,
        fork INTEGER NOT NULL
    )
    """,
    "CREATE INDEX loopwright_branches_thread ON loopwright_branches (thread)",
    # One element of a list each; `type` is the serializer's, NULL for its usual one.
    """
    CREATE TABLE loopwright_rows (
        branch INTEGER NOT NULL,
        position INTEGER NOT NULL,
        type TEXT,
        body BLOB NOT NULL,
        PRIMARY KEY (branch, position)
    )
    """,
    # Other values that are large or outlive a checkpoint, once per thread and content.
    """
    CREATE TABLE loopwright_values (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        thread TEXT NOT NULL,
        hash BLOB NOT NULL,
        type TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (thread, hash)
    )
    """,
    # The names of channels and nodes, which every checkpoint of a graph repeats.
    "CREATE TABLE loopwright_shapes (id INTEGER PRIMARY KEY, body BLOB NOT NULL UNIQUE)",
    # Counts deletions of rows and values: what a process remembers from before is void.
    "CREATE TABLE loopwright_removals (number INTEGER NOT NULL)",
    "INSERT INTO loopwright_removals VALUES (0)",
)

LOG = (
    # The log of `sqlite_log`. A sequence number is never used twice. Earlier files have the table.
    """
    CREATE TABLE IF NOT EXISTS loopwright_log (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        thread TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    )
    """,
    # By kind: a poll of a queue passes over whatever else the log has of a thread.
    "DROP INDEX IF EXISTS loopwright_log_thread",
    "CREATE INDEX loopwright_log_kind ON loopwright_log (thread, kind, sequence)",
)

SHARED = (
    # Who shares the rows of a branch: asked whenever rows are deleted.
    "CREATE INDEX loopwright_branches_parent ON loopwright_branches (parent)"
    " WHERE parent IS NOT NULL",
)

LEASES = (
    # Who runs a thread; see `lease_table`. A row is deleted when its run ends.
    """
    CREATE TABLE loopwright_leases (
        thread TEXT NOT NULL,
        namespace TEXT NOT NULL,
        run TEXT NOT NULL,
        machine TEXT NOT NULL,
        host TEXT NOT NULL,
        process INTEGER NOT NULL,
        began TEXT NOT NULL,
        claimed REAL NOT NULL,
        expires REAL NOT NULL,
        PRIMARY KEY (thread, namespace)
    ) WITHOUT ROWID
    """,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (LINEAR, LOG, SHARED, LEASES)
"""Append only: a file holds the number of the last one that was applied to it."""

_CREATE = "CREATE TABLE IF NOT EXISTS loopwright_migrations (number INTEGER PRIMARY KEY)"
_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'loopwright_migrations'"
_APPLIED = "SELECT coalesce(max(number), 0) FROM loopwright_migrations"
_APPLY = "INSERT INTO loopwright_migrations VALUES (?)"


def migrate(database: Database) -> None:
    """Bring the file's tables up to date. Raises DatabaseError, also for a newer schema."""
    with database.transaction() as cursor:
        if schema(cursor, database.path) == len(MIGRATIONS):
            return
        cursor.execute("BEGIN IMMEDIATE")  # of two processes that open a file, one migrates
        cursor.execute(_CREATE)
        (done,) = cursor.execute(_APPLIED).fetchone()
        for number, statements in enumerate(MIGRATIONS[done:], done + 1):
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(_APPLY, (number,))


def schema(cursor: sqlite3.Cursor, path: str) -> int:
    """The number of the last migration that was applied, 0 for a file without any of our tables.

    Raises DatabaseError for one that is not known here.
    """
    if cursor.execute(_KNOWN).fetchone() is None:
        return 0
    (number,) = cursor.execute(_APPLIED).fetchone()
    if number > len(MIGRATIONS):
        reason = f"its schema {number} is newer than {len(MIGRATIONS)}, the last one known here"
        raise DatabaseError(path, reason, "install a newer Loopwright or name another file")
    return int(number)
