"""Where an agent keeps its threads: checkpoints, log and leases that belong together.

What is kept is said in `schema` and `log`; SQLite's ways are in `database`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from loopwright.errors import DatabaseError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.lease import Leases
from loopwright.state.log import Log, MemoryLog
from loopwright.state.sqlite_log import SqliteLog
from loopwright.state.store_log import StoreLog

PASSING = ("decision", "run")
"""The channels of our graph that say where a run is, and hold nothing that could be lost."""


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

    def require_idle(self, thread: str) -> None:
        """Raise BusyThreadError if another process runs the thread, or (in a transaction) begins
        to before it is over."""
        if isinstance(self.checkpointer, SqliteCheckpointer):
            self.checkpointer.leases.require_idle(thread)


def sqlite_storage(path: str | Path | None) -> Storage:
    """Everything in one SQLite file; None keeps it in memory. Raises DatabaseError."""
    database = Database(path)
    try:
        checkpointer = SqliteCheckpointer(database, fold_writes=True, passing=PASSING)
        log = SqliteLog(database)
    except DatabaseError:
        database.close()  # a file that is refused is not kept open
        raise
    return Storage(checkpointer, log, leases_for(checkpointer), database.close)


def borrowed_storage(
    checkpointer: BaseCheckpointSaver[Any], log: Log | None, store: BaseStore | None = None
) -> Storage:
    """Someone else's checkpointer, which stays open. Queues and journal are in `log`, else in the
    file of a checkpointer of ours, else in the store, else in memory.
    """
    log = log or _log_beside(checkpointer, store)
    return Storage(checkpointer, log, leases_for(checkpointer), lambda: None)


def _log_beside(checkpointer: BaseCheckpointSaver[Any], store: BaseStore | None) -> Log:
    if isinstance(checkpointer, SqliteCheckpointer):
        return SqliteLog(checkpointer.database)
    return MemoryLog() if store is None else StoreLog(store)


def leases_for(checkpointer: BaseCheckpointSaver[Any] | None) -> Leases:
    """Who runs the threads of a checkpointer in this process: shared by all that use its file."""
    if isinstance(checkpointer, SqliteCheckpointer):
        return checkpointer.leases.local
    return Leases()


def storage_of(
    database: str | Path | None,
    checkpointer: BaseCheckpointSaver[Any] | None,
    log: Log | None,
    store: BaseStore | None,
) -> Storage:
    """The caller's checkpointer if there is one, with its log; else a database of our own."""
    if checkpointer is None:
        return sqlite_storage(database)
    return borrowed_storage(checkpointer, log, store)
