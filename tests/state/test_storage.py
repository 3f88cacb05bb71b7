"""What belongs to a storage: checkpoints, log and leases over the same threads."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from loopwright.errors import BusyThreadError, DatabaseError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.log import MemoryLog
from loopwright.state.sqlite_log import SqliteLog
from loopwright.state.storage import Storage, borrowed_storage, sqlite_storage
from loopwright.state.store_log import StoreLog
from tests.support.graphs import Rig, rig

pytestmark = pytest.mark.anyio


def on(storage: Storage, *script: str) -> Rig:
    """A graph over a storage."""
    return rig(*script, checkpointer=storage.checkpointer, log=storage.log)


def files(folder: Path) -> set[str]:
    """The names in a folder."""
    return {path.name for path in folder.iterdir()}


async def test_everything_of_a_thread_is_in_one_file(tmp_path: Path) -> None:
    storage = sqlite_storage(tmp_path / "t.db")
    await on(storage, "hello").run({"messages": "hi"})
    storage.log.append("t", "steering", {"x": 1})
    storage.close()
    assert files(tmp_path) <= {"t.db", "t.db-wal", "t.db-shm"}
    again = sqlite_storage(tmp_path / "t.db")
    assert len(await on(again).ledger()) == 2
    assert [entry.body for entry in again.log.read("t", ["steering"])] == [{"x": 1}]
    again.close()


MAKERS: dict[str, Callable[[Path], Storage]] = {
    "file": lambda folder: sqlite_storage(folder / "t.db"),
    "memory": lambda folder: sqlite_storage(None),
    "borrowed": lambda folder: borrowed_storage(InMemorySaver(), None),
}


@pytest.mark.parametrize("name", MAKERS)
async def test_threads_are_listed_the_one_written_last_first(name: str, tmp_path: Path) -> None:
    storage = MAKERS[name](tmp_path)
    assert storage.thread_ids() == []
    made = on(storage, "a", "b", "c", "d")
    for thread in ("x", "z", "y", "x"):
        await made.run({"messages": "hi"}, thread)
    assert storage.thread_ids() == ["x", "y", "z"]
    storage.close()


def test_all_storages_of_a_file_in_a_process_share_its_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = sqlite_storage(tmp_path / "t.db"), sqlite_storage("t.db")
    third = sqlite_storage("other.db")
    lease = first.leases.claim("t")
    with pytest.raises(BusyThreadError):
        second.leases.claim("t")
    third.leases.claim("t").release()
    lease.release()
    second.leases.claim("t").release()
    for storage in (first, second, third):
        storage.close()


def test_storages_in_memory_have_nothing_to_do_with_each_other() -> None:
    first, second = sqlite_storage(None), sqlite_storage(None)
    first.leases.claim("t")
    first.log.append("t", "k", 1)
    second.leases.claim("t")
    assert second.log.read("t", ["k"]) == []
    for storage in (first, second):
        storage.close()


def test_a_storage_may_be_closed_twice_and_is_then_closed(tmp_path: Path) -> None:
    storage = sqlite_storage(tmp_path / "t.db")
    storage.close()
    storage.close()
    with pytest.raises(DatabaseError, match="was closed"):
        storage.log.append("t", "k", 1)


async def test_what_was_borrowed_stays_open() -> None:
    saver: Any = InMemorySaver()
    log = MemoryLog()
    storage = borrowed_storage(saver, log)
    assert (storage.checkpointer, storage.log) == (saver, log)
    await on(storage, "hello").run({"messages": "hi"})
    storage.close()
    assert len(await on(storage).ledger()) == 2
    assert isinstance(borrowed_storage(saver, None).log, MemoryLog)
    assert isinstance(borrowed_storage(saver, None, InMemoryStore()).log, StoreLog)


def test_the_log_of_a_checkpointer_of_ours_is_in_its_file(tmp_path: Path) -> None:
    with closing(SqliteCheckpointer(tmp_path / "t.db")) as saver:
        borrowed_storage(saver, None).log.append("t", "steering", 1)
        assert [entry.body for entry in SqliteLog(saver.database).read("t", ["steering"])] == [1]


async def test_a_file_is_settled_when_what_was_begun_has_come_back(tmp_path: Path) -> None:
    storage = sqlite_storage(tmp_path / "t.db")
    database: Any = storage.log.database  # type: ignore[attr-defined]
    await database.settled()
    begun = [asyncio.ensure_future(storage.log.poll("t", ["k"])) for _ in range(3)]
    await database.settled()
    for _ in range(3):  # the turns in which their callers hear of it
        await asyncio.sleep(0)
    assert all(task.done() for task in begun)
    storage.close()
