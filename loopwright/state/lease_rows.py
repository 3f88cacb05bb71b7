"""The rows of leases as anyone reads them: whose they are, and whether their run may still live.

Taking and giving back is `lease_table`'s.
"""

import sqlite3
import time
from dataclasses import dataclass

from loopwright.state.owner import Process

_ROWS = (
    "SELECT thread, namespace, run, machine, host, process, began, expires FROM loopwright_leases"
)
_FORGET = "DELETE FROM loopwright_leases WHERE thread = ? AND namespace = ? AND run = ?"


@dataclass(frozen=True)
class LeaseRow:
    """One row; `is_live` unless it has expired or its process is certainly gone."""

    thread: str
    namespace: str
    run: str
    host: str
    process: int
    is_live: bool


def lease_rows(cursor: sqlite3.Cursor) -> list[LeaseRow]:
    """All rows of a file, as they are now."""
    now, found = time.time(), []
    for thread, namespace, run, machine, host, process, began, expires in cursor.execute(_ROWS):
        gone = Process(machine, host, process, began).is_gone()
        live = expires > now and not gone
        found.append(LeaseRow(thread, namespace, run, host, process, live))
    return found


def forget(cursor: sqlite3.Cursor, lease: LeaseRow) -> None:
    """Delete the row, if it is still this run's."""
    cursor.execute(_FORGET, (lease.thread, lease.namespace, lease.run))
