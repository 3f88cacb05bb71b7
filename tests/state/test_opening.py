"""How a saver is opened and closed: by a path, by the stock name, in both kinds of `with`."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from loopwright import DatabaseError, SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.graphs import on
from tests.support.savers import chat, history, talk


@pytest.mark.parametrize("opened", [SqliteCheckpointer, SqliteCheckpointer.from_conn_string])
def test_a_path_is_opened_and_closed_by_with(tmp_path: Path, opened: Any) -> None:
    path = str(tmp_path / "threads.db")
    with opened(path) as saver:
        talk(chat(saver))
        stored = history(chat(saver))
    with pytest.raises(DatabaseError, match="closed"):
        saver.get_tuple(on("t"))
    with opened(path) as saver:
        assert history(chat(saver)) == stored


@pytest.mark.anyio
@pytest.mark.parametrize("opened", [SqliteCheckpointer, SqliteCheckpointer.from_conn_string])
async def test_a_path_is_opened_and_closed_by_async_with(tmp_path: Path, opened: Any) -> None:
    path = str(tmp_path / "threads.db")
    async with opened(path) as saver:
        await chat(saver).ainvoke({"messages": [("user", "go")]}, on("t"))
        before = await saver.aget_tuple(on("t"))
    with pytest.raises(DatabaseError, match="closed"):
        await saver.aget_tuple(on("t"))
    async with opened(path) as saver:
        again = await saver.aget_tuple(on("t"))
    assert again.checkpoint == before.checkpoint


def test_nothing_named_and_the_stock_word_for_memory_are_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for saver in (SqliteCheckpointer(), SqliteCheckpointer.from_conn_string(":memory:")):
        with saver:
            talk(chat(saver))
            assert saver.thread_ids() == ["t"]
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_open_is_taken_as_it_is(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    saver = SqliteCheckpointer(database)
    assert saver.database is database
    saver.close()
    saver.close()
    with pytest.raises(DatabaseError, match="closed"):
        SqliteCheckpointer(database)


def test_closing_commits_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteCheckpointer(path, fold_writes=True) as saver:
        at: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
        saver.put_writes(at, [("channel", 1)], "task")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM writes").fetchone() == (1,)
    connection.close()
