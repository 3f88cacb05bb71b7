"""Lists as rows: what is stored for a list that grows, is cut, forks, and forks again."""

import sqlite3
from collections.abc import Iterator

import pytest

from loopwright.state.branches import Place, Ref, Typed, extend, read
from loopwright.state.database import Database
from loopwright.state.migrations import migrate

PLACE = Place("t", "")


@pytest.fixture
def cursor() -> Iterator[sqlite3.Cursor]:
    database = Database()
    migrate(database)
    with database.transaction() as cursor:
        yield cursor
    database.close()


def typed(*words: str) -> list[Typed]:
    return [("msgpack", word.encode()) for word in words]


def words(cursor: sqlite3.Cursor, ref: Ref, start: int = 0) -> str:
    return " ".join(body.decode() for _, body in read(cursor, ref, start))


def rows(cursor: sqlite3.Cursor) -> int:
    (number,) = cursor.execute("SELECT count(*) FROM loopwright_rows").fetchone()
    return int(number)


def test_a_list_that_grows_stores_each_element_once(cursor: sqlite3.Cursor) -> None:
    ref = None
    for word in "a b c".split():
        ref = extend(cursor, PLACE, "m", ref, typed(word))
    assert ref is not None and ref.length == 3
    assert words(cursor, ref) == "a b c"
    assert words(cursor, Ref(ref.branch, 2)) == "a b"
    assert words(cursor, ref, 1) == "b c"
    assert words(cursor, ref, 3) == ""
    assert rows(cursor) == 3
    assert extend(cursor, PLACE, "m", ref, []) == ref


def test_a_fork_shares_what_lies_below_it(cursor: sqlite3.Cursor) -> None:
    trunk = extend(cursor, PLACE, "m", None, typed(*"abcd"))
    fork = extend(cursor, PLACE, "m", Ref(trunk.branch, 2), typed(*"xy"))
    assert (words(cursor, trunk), words(cursor, fork)) == ("a b c d", "a b x y")
    assert fork.branch != trunk.branch
    assert rows(cursor) == 6
    assert extend(cursor, PLACE, "m", fork, typed("z")) == Ref(fork.branch, 5)
    assert words(cursor, Ref(fork.branch, 5), 1) == "b x y z"


def test_a_cut_below_the_fork_hangs_on_the_branch_that_has_the_rows(cursor: sqlite3.Cursor) -> None:
    trunk = extend(cursor, PLACE, "m", None, typed(*"abcd"))
    fork = extend(cursor, PLACE, "m", Ref(trunk.branch, 2), typed(*"xy"))
    again = extend(cursor, PLACE, "m", Ref(fork.branch, 1), typed(*"pq"))
    assert words(cursor, again) == "a p q"
    (parent,) = cursor.execute(
        "SELECT parent FROM loopwright_branches WHERE branch = ?", (again.branch,)
    ).fetchone()
    assert parent == trunk.branch


def test_forks_of_forks_are_read_in_order(cursor: sqlite3.Cursor) -> None:
    ref = extend(cursor, PLACE, "m", None, typed("0", "end"))
    for number in range(1, 40):
        ref = extend(cursor, PLACE, "m", Ref(ref.branch, number), typed(str(number), "end"))
    assert words(cursor, ref) == " ".join([*map(str, range(40)), "end"])
    assert words(cursor, ref, 38) == "38 39 end"
    assert rows(cursor) == 80


def test_the_kind_of_an_element_is_kept(cursor: sqlite3.Cursor) -> None:
    mixed = [("null", b""), ("msgpack", b"m"), ("bytes", b"b")]
    ref = extend(cursor, PLACE, "m", None, mixed)
    assert read(cursor, ref) == mixed
    kinds = cursor.execute("SELECT type FROM loopwright_rows ORDER BY position").fetchall()
    assert kinds == [("null",), (None,), ("bytes",)]  # the usual one takes no room


def test_a_branch_number_is_never_used_twice(cursor: sqlite3.Cursor) -> None:
    old = extend(cursor, PLACE, "m", None, typed("a"))
    cursor.execute("DELETE FROM loopwright_branches")
    cursor.execute("DELETE FROM loopwright_rows")
    assert extend(cursor, PLACE, "m", None, typed("b")).branch > old.branch
