"""Where an agent keeps its threads: checkpoints, log and leases that belong together.

What is kept is said in `schema` and `log`; SQLite's ways are in `database`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from loopwright.state.aborts import AbortWatch
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import MEMORY, Database
from loopwright.state.lease import Leases, leases_of
from loopwright.state.log import Log, MemoryLog
from loopwright.state.sqlite_log import SqliteLog


@dataclass(frozen=True)
class Storage:
    """Checkpoints, log and leases over the same threads. `close` may be called twice."""

    checkpointer: BaseCheckpointSaver[Any]
    log: Log
    leases: Leases
    close: Callable[[], None]

    def thread_ids(self) -> list[str]:
        """The stored threads, the one written last first."""
        if isinstance(self.checkpointer, SqliteCheckpointer):
            return self.checkpointer.thread_ids()
        newest: dict[str, str] = {}
        for item in self.checkpointer.list(None):
            configurable = item.config["configurable"]
            thread = str(configurable["thread_id"])
            newest[thread] = max(newest.get(thread, ""), str(configurable["checkpoint_id"]))
        return sorted(newest, key=lambda thread: newest[thread], reverse=True)


def sqlite_storage(path: str | Path | None) -> Storage:
    """Everything in one SQLite file; None keeps it in memory. Raises DatabaseError."""
    database = Database(path)
    checkpointer, log = SqliteCheckpointer(database, fold_writes=True), SqliteLog(database)
    if database.path == MEMORY:
        return Storage(checkpointer, log, Leases(), database.close)
    leases = leases_of(database.path)
    watch = AbortWatch(log, leases)

    def close() -> None:
        watch.close()
        database.close()

    return Storage(checkpointer, log, leases, close)


def borrowed_storage(checkpointer: BaseCheckpointSaver[Any], log: Log | None) -> Storage:
    """Someone else's checkpointer, which stays open; without a log, queues are in memory."""
    return Storage(checkpointer, log or MemoryLog(), Leases(), lambda: None)
