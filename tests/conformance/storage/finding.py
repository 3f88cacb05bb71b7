"""What is found in a database file after the work: turns, checkpoints, rows, and its size.

Transcripts are read by an agent, tables by their names; how the work was done is in `working`.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from langchain_core.messages import AIMessage

from loopwright import Agent, UnknownThreadError

THREAD_COLUMNS = ("thread", "thread_id")


def turns_stored(path: Path, threads: Iterable[str]) -> int:
    """Answers in the transcripts of these threads; a thread that is not stored has none."""
    with Agent("offline", database=path) as agent:
        return sum(_answers(agent, thread) for thread in threads)


def _answers(agent: Agent, thread: str) -> int:
    try:
        return sum(isinstance(message, AIMessage) for message in agent.messages(thread))
    except UnknownThreadError:
        return 0


def megabytes(path: Path) -> float:
    """The size of a database that nobody has open, with the files beside it."""
    parts = path.parent.glob(f"{path.name}*")
    return sum(part.stat().st_size for part in parts) / 1e6


def checkpoints_per_thread(path: Path) -> int:
    """The most checkpoints that any thread has."""
    with closing(sqlite3.connect(path)) as connection:
        counts = connection.execute("SELECT count(*) FROM checkpoints GROUP BY thread_id")
        return max((count for (count,) in counts), default=0)


def rows_of(path: Path, thread: str) -> int:
    """Rows of any table that belong to a thread."""
    with closing(sqlite3.connect(path)) as connection:
        return sum(
            int(
                connection.execute(
                    f"SELECT count(*) FROM {table} WHERE {column} = ?", (thread,)
                ).fetchone()[0]
            )
            for table, column in _columns(connection)
            if column in THREAD_COLUMNS
        )


def _columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables"
        " JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'"
    ).fetchall()


def orphans(path: Path) -> int:
    """Rows of lists that no thread has."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM loopwright_rows"
            " WHERE branch NOT IN (SELECT branch FROM loopwright_branches)"
        ).fetchone()
    return int(count)


def unused_pages(path: Path) -> int:
    """Pages of the file that hold nothing."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])
