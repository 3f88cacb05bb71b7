"""Writes of tasks: stored as LangGraph's savers do, or waiting for their checkpoint."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Overwrite

from loopwright.state.branches import Place
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.pending import PACKED, Task, Waiting
from tests.support.savers import count, folding, ours, stock

A, B = Place("a", ""), Place("b", "")
LONG = "long " * 100


def task(id: str, checkpoint: str = "1") -> Task:
    return Task(checkpoint, id, "", (("c", id),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def saver(path: Path) -> Iterator[SqliteCheckpointer]:
    with folding(path) as saver:
        yield saver


def at(id: str | None) -> Any:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}}


def put(saver: Any, id: str, parent: str | None, items: list[Any]) -> None:
    checkpoint: Any = {
        "v": 4,
        "id": id,
        "ts": "",
        "channel_values": {"items": items},
        "channel_versions": {"items": int(id)},
        "versions_seen": {},
    }
    saver.put(at(parent), checkpoint, {}, {"items": int(id)})


def writes(saver: Any, id: str = "1") -> Any:
    return saver.get_tuple(at(id)).pending_writes


def stored(path: Path) -> list[tuple[str, int, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT task_id, idx, channel FROM writes ORDER BY rowid"
        ).fetchall()


def test_only_one_task_of_a_superstep_waits() -> None:
    waiting = Waiting()
    first = task("first")
    assert waiting.take_in(A, first)
    assert waiting.take_in(B, task("other place"))
    assert not waiting.take_in(A, task("second"))
    waiting.done(A, first)
    assert not waiting.take_in(A, task("third"))
    assert waiting.take_in(A, task("of the next superstep", "2"))
    assert {place for place in waiting.places()} == {A, B}
    assert waiting.places("b") == [B]


def test_a_task_that_was_replaced_is_not_taken_out() -> None:
    waiting = Waiting()
    first, second = task("first"), task("second", "2")
    waiting.take_in(A, first)
    waiting.done(A, first, several=True)
    assert not waiting.take_in(A, task("another of the first"))
    assert waiting.take_in(A, second)
    waiting.done(A, first)
    waiting.done(A, None)
    assert waiting.at(A) is second


def test_writes_are_stored_at_once_unless_they_may_wait(path: Path) -> None:
    with ours(path) as saver:
        put(saver, "1", None, [])
        saver.put_writes(at("1"), [("a", 1), ("b", 2)], "task", "path")
        assert stored(path) == [("task", 0, "a"), ("task", 1, "b")]


def test_writes_that_wait_are_seen_and_committed_with_their_checkpoint(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    new = {"text": LONG}
    saver.put_writes(at("1"), [("items", [new]), ("other", None), ("third", 3)], "task", "path")
    seen = writes(saver)
    assert seen == [("task", "items", [new]), ("task", "other", None), ("task", "third", 3)]
    assert stored(path) == []
    put(saver, "2", "1", [new, LONG, new])
    assert stored(path) == [("task", PACKED, "")]
    assert writes(saver) == seen
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("SELECT length(value) FROM writes").fetchone()
    assert size < 100 < len(LONG)  # the new element is in the list's rows already


def test_a_list_that_replaces_another_is_stored_once(path: Path, saver: SqliteCheckpointer) -> None:
    whole = [f"{number} {LONG}" for number in range(9)]
    put(saver, "1", None, ["old"])
    saver.put_writes(at("1"), [("items", Overwrite(whole))], "t")
    put(saver, "2", "1", list(whole))
    with closing(sqlite3.connect(path)) as connection:
        ((size,),) = connection.execute("SELECT sum(length(value)) FROM writes").fetchall()
    assert size < len(LONG)
    assert writes(saver) == [("t", "items", Overwrite(whole))]


@pytest.mark.parametrize("channel", ["__interrupt__", "__error__", "__resume__"])
def test_interrupts_and_errors_never_wait(
    path: Path, saver: SqliteCheckpointer, channel: str
) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [(channel, "asked")], "task")
    assert count(path, "writes") == 1


def test_the_input_of_a_run_never_waits(path: Path, saver: SqliteCheckpointer) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [("a", 1)], "00000000-0000-0000-0000-000000000000")
    assert count(path, "writes") == 1


def test_another_task_s_write_commits_the_one_that_waits(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    for name in ("x", "y", "z"):
        saver.put_writes(at("1"), [("a", name)], name)
    assert stored(path) == [(name, 0, "a") for name in "xyz"]


def test_writes_of_a_superstep_that_was_left_are_kept(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [("a", 1)], "task")
    put(saver, "3", "2", [])
    assert stored(path) == [("task", 0, "a")]


def test_what_waits_is_committed_when_the_file_is_closed(path: Path) -> None:
    with folding(path) as saver:
        put(saver, "1", None, [])
        saver.put_writes(at("1"), [("a", 1)], "task")
        assert stored(path) == []
    assert stored(path) == [("task", 0, "a")]


def test_what_waits_is_committed_for_a_listing_and_gone_with_its_thread(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [("a", 1)], "task")
    assert [item.pending_writes for item in saver.list(at(None))] == [[("task", "a", 1)]]
    assert count(path, "writes") == 1
    put(saver, "2", "1", [])
    saver.put_writes(at("2"), [("a", 2)], "task 2")
    saver.delete_thread("t")
    saver.flush()
    assert count(path, "writes") == 0


def test_a_checkpoint_that_fails_keeps_its_writes_waiting(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [("a", 1)], "task")
    with pytest.raises(TypeError):
        put(saver, "2", "1", [object()])
    assert stored(path) == []
    assert writes(saver) == [("task", "a", 1)]
    put(saver, "2", "1", [])
    assert stored(path) == [("task", PACKED, "")]


def test_writes_without_a_safe_form_go_with_the_checkpoint_that_fails_for_them(
    path: Path, saver: SqliteCheckpointer
) -> None:
    put(saver, "1", None, [])
    saver.put_writes(at("1"), [("a", object())], "task")
    with pytest.raises(TypeError, match="object"):
        put(saver, "2", "1", [object()])
    assert writes(saver) == []
    put(saver, "2", "1", [1])
    saver.close()
    assert stored(path) == []


@pytest.mark.parametrize("fold", [False, True])
def test_writes_of_a_task_that_runs_again_are_those_of_the_stock_saver(
    tmp_path: Path, fold: bool
) -> None:
    """The first ones stay, later ones fill up; interrupts are replaced."""
    told = []
    for opened in (folding if fold else ours, stock):
        with opened(tmp_path / f"{opened.__name__}.db") as saver:
            put(saver, "1", None, [])
            saver.put_writes(at("1"), [("a", 1)], "task", "p")
            put(saver, "2", "1", [])
            saver.put_writes(at("1"), [("a", 9), ("b", 2)], "task", "p")
            put(saver, "3", "1", [])
            for answer in ("first", "second"):
                saver.put_writes(at("1"), [("__interrupt__", answer)], "task", "p")
            saver.put_writes(at("1"), [("c", 3)], "early", "a")
            put(saver, "4", "1", [])
            told.append(writes(saver))
    assert told[0] == told[1]
    assert ("task", "a", 1) in told[0] and ("task", "a", 9) not in told[0]
