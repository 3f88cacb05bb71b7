"""The schema of a file: made once, kept when it is there, refused when it is newer."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from loopwright.errors import DatabaseError
from loopwright.state import migrations
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.migrations import MIGRATIONS, migrate
from loopwright.state.sqlite_log import SqliteLog
from tests.support.processes import start


def tables(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOTNULL"))


def test_a_file_is_migrated_once(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    for _ in range(2):
        database = Database(path)
        migrate(database)
        SqliteLog(database)
        with database.transaction() as cursor:
            numbers = cursor.execute("SELECT number FROM loopwright_migrations").fetchall()
            assert numbers == [(number,) for number in range(1, len(MIGRATIONS) + 1)]
            assert cursor.execute("SELECT number FROM loopwright_removals").fetchall() == [(0,)]
        database.close()
    assert {"loopwright_rows", "loopwright_branches", "loopwright_log"} <= set(tables(path))


def test_an_older_file_gets_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "threads.db"
    database = Database(path)
    migrate(database)
    added = ("CREATE TABLE later (a)", "INSERT INTO later VALUES (7)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, added))
    migrate(database)
    migrate(database)
    with database.transaction() as cursor:
        assert cursor.execute("SELECT a FROM later").fetchall() == [(7,)]
    database.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "threads.db")
    migrate(database)
    before = tables(tmp_path / "threads.db")
    wrong = ("CREATE TABLE later (a)", "INSERT INTO nowhere VALUES (7)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, wrong))
    with pytest.raises(DatabaseError, match="nowhere"):
        migrate(database)
    database.close()
    assert tables(tmp_path / "threads.db") == before


def test_a_newer_schema_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    database = Database(path)
    migrate(database)
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO loopwright_migrations VALUES (99)")
    with pytest.raises(DatabaseError, match=r"threads\.db.*schema 99 is newer.*install a newer"):
        SqliteCheckpointer(database)
    database.close()


def test_processes_that_open_a_new_file_together_all_succeed(tmp_path: Path) -> None:
    script = """
        import sys
        from loopwright.state.checkpointer import SqliteCheckpointer
        from loopwright.state.database import Database
        print("ready", flush=True)
        open(f"{sys.argv[1]}/gate").close()
        for number in range(10):
            database = Database(f"{sys.argv[1]}/{number}.db")
            assert SqliteCheckpointer(database).thread_ids() == []
            database.close()
    """
    os.mkfifo(tmp_path / "gate")
    processes = [start(script, tmp_path) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    with open(tmp_path / "gate", "w"):  # opens for all at once
        assert [process.communicate(timeout=60)[1] for process in processes] == ["", "", ""]
