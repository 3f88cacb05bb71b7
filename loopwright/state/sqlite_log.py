"""The log in the same SQLite file and connection as the checkpoints.

The contract is `log.Log`'s; readers and writers may live in any process that opens the file.
"""

import json
from collections.abc import Sequence
from typing import Any

from loopwright.state.database import Database
from loopwright.state.log import Entry

_CREATE = """
CREATE TABLE IF NOT EXISTS loopwright_log (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    thread TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);
"""
_INDEX = "CREATE INDEX IF NOT EXISTS loopwright_log_thread ON loopwright_log (thread, sequence)"
_APPEND = "INSERT INTO loopwright_log (thread, kind, body) VALUES (?, ?, ?)"
_DELETE = "DELETE FROM loopwright_log WHERE thread = ?"
_READ = (
    "SELECT sequence, kind, body FROM loopwright_log"
    " WHERE thread = ? AND sequence > ? ORDER BY sequence"
)


class SqliteLog:
    """A `Log` whose appends are committed and visible to every process when they return."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.transaction() as cursor:
            cursor.execute(_CREATE)
            cursor.execute(_INDEX)

    def append(self, thread: str, kind: str, body: Any) -> int:
        with self.database.transaction() as cursor:
            cursor.execute(_APPEND, (thread, kind, json.dumps(body)))
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        with self.database.transaction() as cursor:
            rows = cursor.execute(_READ, (thread, after)).fetchall()
        entries = [Entry(row[0], thread, row[1], json.loads(row[2])) for row in rows]
        return [entry for entry in entries if entry.kind in kinds]

    def delete(self, thread: str) -> None:
        with self.database.transaction() as cursor:
            cursor.execute(_DELETE, (thread,))

    def version(self) -> int:
        """A number that changes when another connection has written to the file."""
        with self.database.transaction() as cursor:
            (number,) = cursor.execute("PRAGMA data_version").fetchone()
            return int(number)

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        return await self.database.hop(self.read, thread, kinds, after)
