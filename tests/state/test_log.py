"""One contract for every log: appended once, read by kind behind a cursor, numbers used once."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopwright.state.database import Database
from loopwright.state.log import Log, MemoryLog
from loopwright.state.sqlite_log import SqliteLog
from tests.support.processes import output


@pytest.fixture(params=["memory", "sqlite", "sqlite in memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    if request.param == "memory":
        yield MemoryLog()
        return
    database = Database(tmp_path / "threads.db" if request.param == "sqlite" else None)
    yield SqliteLog(database)
    database.close()


def bodies(log: Log, *kinds: str, after: int = 0, thread: str = "t") -> list[Any]:
    return [entry.body for entry in log.read(thread, kinds, after)]


def test_entries_are_read_oldest_first_with_growing_numbers(log: Log) -> None:
    numbers = [log.append("t", "k", {"n": n}) for n in range(3)]
    assert numbers == sorted(set(numbers))
    entries = log.read("t", ["k"])
    assert [(e.sequence, e.thread, e.kind, e.body) for e in entries] == [
        (number, "t", "k", {"n": n}) for n, number in enumerate(numbers)
    ]


def test_only_the_wanted_kinds_of_the_wanted_thread_are_read(log: Log) -> None:
    for thread, kind in (("t", "a"), ("t", "b"), ("u", "a"), ("t", "c")):
        log.append(thread, kind, thread + kind)
    assert bodies(log, "a", "c") == ["ta", "tc"]
    assert bodies(log, "a", thread="u") == ["ua"]
    assert bodies(log) == bodies(log, "a", thread="nobody") == []


def test_what_lies_behind_a_cursor_is_read(log: Log) -> None:
    first, second = log.append("t", "k", 1), log.append("t", "k", 2)
    assert bodies(log, "k", after=first) == [2]
    assert bodies(log, "k", after=second) == []


def test_numbers_of_forgotten_entries_are_not_used_again(log: Log) -> None:
    old = [log.append("t", "k", n) for n in range(3)]
    log.append("u", "k", "stays")
    log.delete("t")
    assert bodies(log, "k") == []
    assert bodies(log, "k", thread="u") == ["stays"]
    assert log.append("t", "k", "new") > max(old)


def test_any_json_value_is_kept(log: Log) -> None:
    values: list[Any] = [None, True, 1.5, "\u00e9\ud7ff", [], {"a": [{"b": None}]}]
    for value in values:
        log.append("t", "k", value)
    assert bodies(log, "k") == values


@pytest.mark.anyio
async def test_polling_reads_the_same(log: Log) -> None:
    log.append("t", "k", 1)
    assert await log.poll("t", ["k"]) == log.read("t", ["k"])
    assert await log.poll("t", ["k"], after=1) == []


def test_threads_append_side_by_side_without_a_loss(log: Log) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda n: log.append("t", "k", n), range(200)))
    assert len(set(numbers)) == 200
    assert sorted(bodies(log, "k")) == list(range(200))


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
    assert bodies(log, "k") == ["from here", "from there"]
    database.close()


@pytest.mark.anyio
async def test_a_poll_does_not_block_the_event_loop(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    log = SqliteLog(database)
    with database.lock:
        poll = asyncio.ensure_future(log.poll("t", ["k"]))
        await asyncio.sleep(0)
        assert not poll.done()
    assert await poll == []
    database.close()
