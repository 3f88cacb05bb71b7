"""One contract for every log: appended once, read by kind behind a cursor, numbers used once."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from loopwright.errors import InputError
from loopwright.state.database import Database
from loopwright.state.log import CallbackLog, Log, MemoryLog
from loopwright.state.sqlite_log import SqliteLog
from loopwright.state.store_log import PAGE, StoreLog


@contextmanager
def sqlite(path: Path | None) -> Iterator[Log]:
    database = Database(path)
    yield SqliteLog(database)
    database.close()


@contextmanager
def sqlite_store(path: Path) -> Iterator[Log]:
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        yield StoreLog(store)


@contextmanager
def simple(log: Log) -> Iterator[Log]:
    yield log


LOGS: dict[str, Callable[[Path], AbstractContextManager[Log]]] = {
    "memory": lambda path: simple(MemoryLog()),
    "functions": lambda path: simple(CallbackLog({"steering": None, "follow_up": None})),
    "sqlite": lambda path: sqlite(path / "threads.db"),
    "sqlite in memory": lambda path: sqlite(None),
    "store in memory": lambda path: simple(StoreLog(InMemoryStore())),
    "store on disk": lambda path: sqlite_store(path / "store.db"),
}


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    with LOGS[request.param](tmp_path) as log:
        yield log


def bodies(log: Log, *kinds: str, after: int = 0, thread: str = "t") -> list[Any]:
    return [entry.body for entry in log.read(thread, kinds, after)]


def test_entries_are_read_oldest_first_with_growing_numbers(log: Log) -> None:
    numbers = [log.append("t", "k", {"n": n}) for n in range(3)]
    assert numbers == sorted(set(numbers))
    entries = log.read("t", ["k"])
    assert [(e.sequence, e.thread, e.kind, e.body) for e in entries] == [
        (number, "t", "k", {"n": n}) for n, number in enumerate(numbers)
    ]


def test_several_entries_are_one_commit_in_their_order(log: Log) -> None:
    before = log.append("t", "k", "first")
    numbers = log.append_all("t", "k", ["a", "b", "c"], full=True)
    assert log.append_all("t", "k", []) == []
    after = log.append("t", "k", "last")
    assert [before, *numbers, after] == sorted({before, *numbers, after})
    assert bodies(log, "k") == ["first", "a", "b", "c", "last"]
    assert bodies(log, "k", after=numbers[0]) == ["b", "c", "last"]


def test_of_several_entries_with_one_that_is_no_json_none_is_kept(log: Log) -> None:
    with pytest.raises(TypeError):
        log.append_all("t", "k", ["good", object()])
    assert bodies(log, "k") == []


def test_only_the_wanted_kinds_of_the_wanted_thread_are_read(log: Log) -> None:
    for thread, kind in (("t", "a"), ("t", "b"), ("u", "a"), ("t", "c"), ("t", "aa"), ("tt", "a")):
        log.append(thread, kind, thread + kind)
    assert bodies(log, "a", "c") == ["ta", "tc"]
    assert bodies(log, "c", "a", "a") == ["ta", "tc"]
    assert bodies(log, "a", thread="u") == ["ua"]
    assert bodies(log) == bodies(log, "a", thread="nobody") == []


@pytest.mark.parametrize("name", ["", "a.b", "a%b", "~", "langgraph", "Grüße/=*[x]"])
def test_threads_and_kinds_may_have_any_name(log: Log, name: str) -> None:
    log.append(name, name, "own")
    for other in ("a%2Eb", "A.B", "ab", "~7e~", "a"):
        log.append(other, name, "of another thread")
        log.append(name, other, "of another kind")
    assert bodies(log, name, thread=name) == ["own"]
    log.delete(name)
    assert bodies(log, name, "a", thread=name) == []
    assert bodies(log, name, thread="a") == ["of another thread"]


def test_what_lies_behind_a_cursor_is_read(log: Log) -> None:
    first, second = log.append("t", "k", 1), log.append("t", "k", 2)
    assert bodies(log, "k", after=first) == [2]
    assert bodies(log, "k", after=second) == []


def test_numbers_of_forgotten_entries_are_not_used_again(log: Log) -> None:
    old = [log.append("t", kind, n) for n, kind in enumerate("kkj")]
    log.append("u", "k", "stays")
    log.delete("t")
    assert bodies(log, "k", "j") == []
    assert bodies(log, "k", thread="u") == ["stays"]
    assert log.append("t", "k", "new") > max(old)


def test_any_json_value_is_kept(log: Log) -> None:
    values: list[Any] = [None, True, 1.5, 2**80, "\u00e9\ud7ff\x00", [], {"a": [{"b": None}]}]
    for value in values:
        log.append("t", "k", value)
    assert bodies(log, "k") == values


def test_what_is_kept_and_read_is_nobody_elses(log: Log) -> None:
    body = {"a": [1]}
    log.append("t", "k", body)
    body["a"].append(2)
    log.read("t", ["k"])[0].body["a"].append(3)
    assert bodies(log, "k") == [{"a": [1]}]


def test_many_entries_are_read_whole_and_forgotten(log: Log) -> None:
    count = 2 * PAGE + 1
    for n in range(count):
        log.append("t", "k", n)
        log.append("t", f"k{n}", n)
    assert bodies(log, "k") == list(range(count))
    log.delete("t")
    assert bodies(log, "k", *(f"k{n}" for n in range(count))) == []


@pytest.mark.anyio
async def test_the_async_methods_do_the_same(log: Log) -> None:
    numbers = await log.commit("t", "k", [1, 2])
    assert await log.poll("t", ["k"]) == await asyncio.to_thread(log.read, "t", ["k"])
    assert [e.sequence for e in await log.poll("t", ["k"])] == numbers
    assert [e.body for e in await log.poll("t", ["k"], after=numbers[0])] == [2]
    assert await log.commit("t", "k", [3], full=True) > numbers


@pytest.mark.anyio
async def test_a_cancelled_caller_does_not_cut_a_commit_short(log: Log) -> None:
    before = asyncio.all_tasks()
    commit = asyncio.ensure_future(log.commit("t", "k", ["kept"]))
    await asyncio.sleep(0)  # it has begun
    commit.cancel()
    await asyncio.gather(*asyncio.all_tasks() - before, return_exceptions=True)
    assert [entry.body for entry in await log.poll("t", ["k"])] == ["kept"]


def test_threads_append_side_by_side_without_a_loss(log: Log) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda n: log.append("t", "k", n), range(200)))
    assert len(set(numbers)) == 200
    assert sorted(bodies(log, "k")) == list(range(200))


OPERATIONS = st.lists(
    st.tuples(st.sampled_from("tu"), st.sampled_from("ab"), st.integers(-1, 3)), max_size=12
)


@given(OPERATIONS)
def test_every_log_reads_what_a_list_would(operations: list[tuple[str, str, int]]) -> None:
    """A negative count is a deletion of the thread."""
    for log in (MemoryLog(), StoreLog(InMemoryStore()), SqliteLog(Database())):
        expected: list[tuple[int, str, str, int]] = []
        for step, (thread, kind, count) in enumerate(operations):
            if count < 0:
                log.delete(thread)
                expected = [entry for entry in expected if entry[1] != thread]
            else:
                numbers = log.append_all(thread, kind, [step] * count)
                expected += [(number, thread, kind, step) for number in numbers]
        for thread in "tu":
            read = [(e.sequence, e.thread, e.kind, e.body) for e in log.read(thread, ["b", "a"])]
            assert read == [entry for entry in expected if entry[1] == thread]
        if isinstance(log, SqliteLog):
            log.database.close()


def test_a_queue_of_functions_takes_no_messages() -> None:
    log = CallbackLog({"steering": None})
    with pytest.raises(InputError, match="takes its queues from functions"):
        log.append("t", "steering", {})


def test_a_log_in_memory_keeps_the_newest_of_a_family_of_kinds_per_thread() -> None:
    log = MemoryLog()
    for kind in ("journal/a", "steering", "journal/b", "journal/b"):
        log.append("t", kind, kind)
    log.append("other", "journal/a", "theirs")
    assert [entry.body for entry in log.read("t", ["journal/a", "journal/b", "steering"])] == [
        "steering",
        "journal/b",
        "journal/b",
    ]
    assert len(log.read("other", ["journal/a"])) == 1
