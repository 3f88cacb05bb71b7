"""What is stored for a channel's value, and how little for one that did not change."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from loopwright.errors import StateError
from loopwright.state.branches import Place
from loopwright.state.database import Database
from loopwright.state.migrations import migrate
from loopwright.state.slots import Held, Slot, Storing, load

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)
PLACE = Place("t", "")
LONG = "long " * 300


@pytest.fixture
def cursor() -> Iterator[sqlite3.Cursor]:
    database = Database()
    migrate(database)
    with database.transaction() as cursor:
        yield cursor
    database.close()


class Values:
    """A channel whose values are stored one after the other."""

    def __init__(self, cursor: sqlite3.Cursor, compared: int | None = 2) -> None:
        self.cursor, self.compared = cursor, compared
        self.held = Held(None)
        self.remembers = True

    def store(self, value: Any, *, changed: bool = True, old: bool = False) -> Slot:
        remembered = (self.held,) if self.remembers else ()
        storing = Storing(self.cursor, SERDE, PLACE, self.held, remembered, self.compared)
        storing.add("c", value, changed=changed, old=old)
        self.held = Held("1", {}, storing.slots, storing.all_lists())
        return storing.slots["c"]

    def load(self) -> Any:
        return load(self.cursor, SERDE, self.held.slots["c"])

    def rows(self, table: str = "loopwright_rows") -> int:
        (number,) = self.cursor.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


@pytest.fixture
def values(cursor: sqlite3.Cursor) -> Values:
    return Values(cursor)


@pytest.mark.parametrize(
    "value",
    [
        *(None, 0, True, "text", b"bytes", bytearray(b"ba"), {"a": [1]}, {3}, LONG),
        *([], [None], [LONG, None, b"x", {"a": 1}], list(range(99))),
        *(_DeltaSnapshot([LONG]), _DeltaSnapshot([])),
    ],
)
def test_every_value_comes_back_as_a_new_one(values: Values, value: Any) -> None:
    values.store(value)
    for _ in range(2):
        assert values.load() == value
        assert type(values.load()) is type(value)
    if isinstance(value, list | dict):
        assert values.load() is not values.load()


def test_a_large_value_is_stored_once(values: Values) -> None:
    first = values.store(LONG)
    assert isinstance(first, int)
    values.store("short")
    assert values.store(LONG) == first
    assert values.store(LONG, changed=False) == first
    assert values.rows("loopwright_values") == 1


def test_what_outlives_its_checkpoint_moves_out_of_the_body(values: Values) -> None:
    small, middle = {"a": 1}, {"a": "x" * 200}
    inline = values.store(small)
    assert isinstance(inline, bytes)
    assert values.store(small, changed=False) == inline
    assert isinstance(values.store({"a": "x" * 20}), bytes)
    assert isinstance(values.store(None, changed=False, old=True), int)
    assert isinstance(values.store(middle), bytes)
    moved = values.store(middle, changed=False)
    assert isinstance(moved, int)
    assert values.store(middle, changed=False, old=True) == moved
    assert values.load() == middle


def test_a_list_stores_what_is_new(values: Values) -> None:
    items = [{"n": 0, "text": LONG}]
    for number in range(1, 9):
        items = [*items, {"n": number, "text": LONG}]
        values.store(items)
        assert values.load() == items
    assert values.rows() == 9
    values.store(items, changed=False)
    values.store([*items[:-2], {"n": "other", "text": LONG}])
    assert values.rows() == 10
    assert values.load()[-1]["n"] == "other"


def test_without_a_memory_the_same_is_found_by_content(values: Values) -> None:
    values.remembers = False
    for end in (3, 5, 4, 9):
        items = [{"n": number, "text": LONG} for number in range(end)]
        values.store(items)
        assert values.load() == items
    assert values.rows() == 10  # the cut to four forks: the row behind is stored again


@pytest.mark.parametrize(("at", "noticed"), [(-1, True), (-2, True), (-3, False)])
def test_an_edit_in_place_is_noticed_near_the_end(values: Values, at: int, noticed: bool) -> None:
    items = [{"n": number, "text": LONG} for number in range(6)]
    values.store(items)
    items[at]["n"] = "edited"
    values.store(items, changed=False)
    assert (values.load() == items) is noticed
    rows = values.rows()
    values.store(items, changed=False)
    assert values.rows() == rows


def test_an_edit_in_place_of_what_a_cut_lays_bare_is_noticed(values: Values) -> None:
    items = [{"n": number, "text": LONG} for number in range(6)]
    values.store(items)
    items[1]["n"] = "edited"
    values.store(items[:2])
    assert values.load() == items[:2]
    values.store([*items[:2], "more"])
    assert values.load() == [*items[:2], "more"]


def test_all_elements_are_compared_on_request(cursor: sqlite3.Cursor) -> None:
    values = Values(cursor, compared=None)
    items = [{"n": number, "text": LONG} for number in range(6)]
    values.store(items)
    items[1]["n"] = "edited"
    values.store(items, changed=False)
    assert values.load() == items
    assert values.rows() == 11


def test_a_short_list_stays_in_the_body_and_an_edit_of_it_too(values: Values) -> None:
    items = [{"n": 1}]
    assert isinstance(values.store(items), bytes)
    items[0]["n"] = 2
    values.store(items, changed=False)
    assert values.load() == [{"n": 2}]
    assert values.rows() == 0


def test_a_snapshot_shares_the_rows_of_the_one_before(values: Values) -> None:
    items = [LONG] * 3
    for size in (3, 6, 9):
        items = [*items, *[LONG] * (size - len(items))]
        values.store(_DeltaSnapshot(items))
        assert values.load() == _DeltaSnapshot(items)
    assert values.rows() == 9


def test_what_is_missing_in_the_file_is_said(values: Values, cursor: sqlite3.Cursor) -> None:
    values.store([LONG, LONG])
    cursor.execute("DELETE FROM loopwright_rows WHERE position = 1")
    with pytest.raises(StateError, match="not stored: restore a backup"):
        values.load()
    values.store(LONG)
    cursor.execute("DELETE FROM loopwright_values")
    with pytest.raises(StateError, match="not stored: restore a backup"):
        values.load()
