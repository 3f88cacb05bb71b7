"""The log in a SQLite file: shared by processes, read by an index, as safe as it is told to be."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from loopwright.state.database import Database
from loopwright.state.migrations import LINEAR
from loopwright.state.sqlite_log import SqliteLog
from tests.support.databases import held
from tests.support.processes import output


def statements(database: Database) -> list[str]:
    """The statements that the database runs from now on."""
    seen: list[str] = []
    database.connection.set_trace_callback(seen.append)
    return seen


def test_another_process_reads_and_appends(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    log = SqliteLog(database)
    log.append("t", "k", "from here")
    script = """
        import sys
        from loopwright.state.database import Database
        from loopwright.state.sqlite_log import SqliteLog
        database = Database(sys.argv[1])
        log = SqliteLog(database)
        print(log.read("t", ["k"])[0].body)
        log.append("t", "k", "from there")
        database.close()
    """
    assert output(script, tmp_path / "threads.db") == "from here"
    assert [entry.body for entry in log.read("t", ["k"])] == ["from here", "from there"]
    database.close()


@pytest.mark.anyio
async def test_the_async_methods_do_not_block_the_event_loop(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    log = SqliteLog(database)
    with held(database):
        poll = asyncio.ensure_future(log.poll("t", ["k"]))
        commit = asyncio.ensure_future(log.commit("t", "k", [1]))
        await asyncio.sleep(0)
        assert not poll.done() and not commit.done()
    assert await poll == []
    assert len(await commit) == 1
    database.close()


def test_a_read_walks_over_nothing_but_the_kinds_it_wants() -> None:
    database = Database()
    log = SqliteLog(database)
    log.append_all("t", "other", ["x"] * 1000)
    wanted = log.append("t", "k", "y")
    seen = statements(database)
    assert [entry.sequence for entry in log.read("t", ["k", "l"])] == [wanted]
    (query,) = [text for text in seen if text.startswith("SELECT")]
    with database.transaction() as cursor:
        plan = cursor.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    (search,) = [row[3] for row in plan if "loopwright_log" in row[3]]
    assert search.endswith("loopwright_log_kind (thread=? AND kind=? AND sequence>?)")
    database.close()


def test_a_log_of_an_earlier_version_keeps_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with closing(sqlite3.connect(path)) as old:
        for statement in LINEAR:
            old.execute(statement)
        old.executescript(
            """
            CREATE TABLE loopwright_migrations (number INTEGER PRIMARY KEY);
            INSERT INTO loopwright_migrations VALUES (1);
            CREATE TABLE loopwright_log (sequence INTEGER PRIMARY KEY AUTOINCREMENT,
                thread TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
            CREATE INDEX loopwright_log_thread ON loopwright_log (thread, sequence);
            INSERT INTO loopwright_log VALUES (7, 't', 'k', '"old"');
            """
        )
    database = Database(path)
    log = SqliteLog(database)
    assert log.append("t", "k", "new") == 8
    assert [entry.body for entry in log.read("t", ["k"])] == ["old", "new"]
    with database.transaction() as cursor:
        names = cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    assert ("loopwright_log_thread",) not in names
    database.close()


def test_a_full_commit_and_only_that_one_is_synchronised(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    log = SqliteLog(database)
    seen = statements(database)
    log.append_all("t", "k", [1], full=True)
    with pytest.raises(TypeError):
        log.append_all("t", "k", [object()], full=True)
    log.append_all("t", "k", [2])
    order = [text.split(" (")[0] for text in seen if not text.startswith("SELECT")]
    assert order == [
        "PRAGMA synchronous",
        "PRAGMA synchronous=FULL",
        "BEGIN ",
        "INSERT INTO loopwright_log",
        "COMMIT",
        "PRAGMA synchronous=1",
        "BEGIN ",
        "INSERT INTO loopwright_log",
        "COMMIT",
    ]
    database.close()


def test_a_full_commit_that_fails_leaves_the_connection_as_it_was(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    SqliteLog(database)
    with pytest.raises(RuntimeError), database.transaction(full=True) as cursor:
        cursor.execute("INSERT INTO loopwright_log (thread, kind, body) VALUES ('t', 'k', '1')")
        raise RuntimeError("in between")
    assert database.connection.execute("PRAGMA synchronous").fetchone() == (1,)
    assert SqliteLog(database).read("t", ["k"]) == []
    database.close()
