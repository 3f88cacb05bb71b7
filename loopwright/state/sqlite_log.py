"""The log in the same SQLite file and connection as the checkpoints.

The contract is `log.Log`'s; its table is made in `migrations`. Any process that opens the file may
read and write.
"""

import json
from collections.abc import Sequence
from typing import Any

from loopwright.state.database import Database
from loopwright.state.lease import Lease
from loopwright.state.log import Entry
from loopwright.state.migrations import migrate

_APPEND = "INSERT INTO loopwright_log (thread, kind, body) VALUES (?, ?, ?)"
_DELETE = "DELETE FROM loopwright_log WHERE thread = ?"
_READ = (
    "SELECT sequence, kind, body FROM loopwright_log INDEXED BY loopwright_log_kind"
    " WHERE thread = ? AND sequence > ? AND kind IN ({}) ORDER BY sequence"
)


class SqliteLog:
    """A `Log` whose appends are committed and visible to every process when they return."""

    def __init__(self, database: Database) -> None:
        self.database = database
        migrate(database)

    def append(self, thread: str, kind: str, body: Any) -> int:
        (sequence,) = self.append_all(thread, kind, [body])
        return sequence

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        return self._append(thread, kind, bodies, full, None)

    def _append(
        self, thread: str, kind: str, bodies: Sequence[Any], full: bool, lease: Lease | None
    ) -> list[int]:
        texts = [json.dumps(body) for body in bodies]
        sequences: list[int] = []
        with self.database.transaction(full=full) as cursor:
            for text in texts:
                cursor.execute(_APPEND, (thread, kind, text))
                assert cursor.lastrowid is not None
                sequences.append(cursor.lastrowid)
            if lease is not None and lease.register is not None:  # now nobody else can take it
                lease.register.require(self.database, lease)
        return sequences

    async def commit(
        self,
        thread: str,
        kind: str,
        bodies: Sequence[Any],
        *,
        full: bool = False,
        lease: Lease | None = None,
    ) -> list[int]:
        store = self.database.hop if full else self.database.here  # the disk takes its time
        return await store(self._append, thread, kind, bodies, full, lease)

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        query = _READ.format(",".join("?" * len(kinds)))
        with self.database.transaction() as cursor:
            rows = cursor.execute(query, (thread, after, *kinds)).fetchall()
        return [Entry(row[0], thread, row[1], json.loads(row[2])) for row in rows]

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        return await self.database.here(self.read, thread, kinds, after)

    def delete(self, thread: str) -> None:
        with self.database.transaction() as cursor:
            cursor.execute(_DELETE, (thread,))

    def version(self) -> int:
        """A number that changes when another connection has written to the file."""
        with self.database.transaction() as cursor:
            (number,) = cursor.execute("PRAGMA data_version").fetchone()
            return int(number)
