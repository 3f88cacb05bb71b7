"""Transactions: one state of the file, and nothing remembered of one that failed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loopwright.errors import DatabaseError
from loopwright.state.bodies import PLAIN
from loopwright.state.branches import Place
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.linear_file import LinearFile, Passing
from loopwright.state.pending import Task
from loopwright.state.reading import Reading
from loopwright.state.slots import Held
from tests.support.savers import count

PLACE = Place("t", "")
SHAPE = (("channel",), (("node", ("channel",)),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def file(path: Path) -> Iterator[LinearFile]:
    database = Database(path)
    SqliteCheckpointer(database)
    yield LinearFile(database)
    database.close()


def test_what_failed_is_not_remembered(path: Path, file: LinearFile) -> None:
    with pytest.raises(KeyError), file.transaction(PLAIN) as reading:
        number = file.shapes.number(reading.cursor, SHAPE)
        file.memo.wrote(PLACE, Held("1"))
        raise KeyError
    assert file.memo.held(PLACE) == ()
    assert count(path, "loopwright_shapes") == 0
    with file.transaction(PLAIN) as reading:
        assert file.shapes.number(reading.cursor, SHAPE) == number
    assert count(path, "loopwright_shapes") == 1


def test_what_passes_and_cannot_be_stored_leaves_nothing_and_is_told_to_its_run_only(
    path: Path, file: LinearFile
) -> None:
    def stored(reading: Reading) -> None:
        file.shapes.number(reading.cursor, SHAPE)

    def failing(reading: Reading) -> None:
        file.shapes.number(reading.cursor, ((), ()))
        raise KeyError("what it holds")

    file.passing.extend([Passing(PLACE, failing), Passing(Place("other", ""), stored)])
    with file.transaction(PLAIN):
        assert count(path, "loopwright_shapes") == 0
    assert count(path, "loopwright_shapes") == 1
    assert not file.passing
    file.require_parent(Place("other", ""))
    with pytest.raises(KeyError, match="what it holds"):
        file.require_parent(PLACE)
    file.require_parent(PLACE)


def test_what_passes_stays_as_long_as_the_file_cannot_be_written(
    path: Path, file: LinearFile
) -> None:
    def full(reading: Reading) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    file.passing.append(Passing(PLACE, full))
    with pytest.raises(DatabaseError, match="full"), file.transaction(PLAIN):
        pass
    assert len(file.passing) == 1
    file.passing[0] = Passing(PLACE, lambda reading: None)
    with file.transaction(PLAIN):
        pass
    assert not file.passing
    file.require_parent(PLACE)


def test_a_snapshot_sees_one_state_while_another_process_writes(
    path: Path, file: LinearFile
) -> None:
    with file.snapshot(PLAIN) as reading, closing(sqlite3.connect(path)) as other:
        assert reading.removals() == 0
        other.execute("UPDATE loopwright_removals SET number = 5")
        other.commit()
        assert reading.removals() == 0
    with file.snapshot(PLAIN) as reading:
        assert reading.removals() == 5


def test_writes_that_could_not_be_committed_still_wait(path: Path, file: LinearFile) -> None:
    task = Task("1", "task", "", (("c", 1),))
    assert file.waiting.take_in(PLACE, task)
    file.database.connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            file.flush(PLAIN)
        other.execute("COMMIT")
    assert file.waiting.at(PLACE) is task
    file.flush(PLAIN)
    assert file.waiting.at(PLACE) is None
    assert count(path, "writes") == 1
