"""Bodies of checkpoints: nothing is lost, names are stored once, stock ones are read too."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint

from loopwright.state.bodies import PLAIN, TYPE, Shapes, decode, encode, replaced
from loopwright.state.database import Database
from loopwright.state.migrations import migrate
from loopwright.state.slots import Slot

SLOTS: dict[str, Slot] = {"a": b"\x01", "b": None, "c": 7, "d": [3, 0, 9], "e": ["bytes", b"x"]}


@pytest.fixture
def cursor() -> Iterator[sqlite3.Cursor]:
    database = Database()
    migrate(database)
    with database.transaction() as cursor:
        yield cursor
    database.close()


def checkpoint(**parts: Any) -> Checkpoint:
    whole: Any = {
        "v": 4,
        "id": "1",
        "ts": "2026-01-02T03:04:05.000006+00:00",
        "channel_values": {},
        "channel_versions": {"a": 300, "b": 2, "e": 1.5},
        "versions_seen": {"node": {"a": 1}, "__input__": {}, "other": {"b": 2, "gone": "x"}},
        "updated_channels": ["a", "gone"],
        **parts,
    }
    return whole  # type: ignore[no-any-return]


def rest(whole: Checkpoint) -> dict[str, Any]:
    return {key: value for key, value in whole.items() if key != "channel_values"}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"updated_channels": None},
        {"updated_channels": []},
        {"channel_versions": {}, "versions_seen": {}},
        {"pending_sends": []},
        {"v": 2, "pending_sends": [{"kept": True}]},
    ],
)
def test_a_body_is_read_as_it_was_written(cursor: sqlite3.Cursor, parts: dict[str, Any]) -> None:
    whole = checkpoint(**parts)
    body = encode(cursor, Shapes(), PLAIN, whole, SLOTS)
    read = decode(cursor, Shapes(), PLAIN, "1", TYPE, body)
    assert (read.checkpoint, read.slots) == (rest(whole), SLOTS)
    assert read.versions == whole["channel_versions"]
    assert read.valued == set(SLOTS)


def test_what_was_never_said_to_be_updated_stays_unsaid(cursor: sqlite3.Cursor) -> None:
    whole = checkpoint()
    del whole["updated_channels"]  # type: ignore[misc]
    body = encode(cursor, Shapes(), PLAIN, whole, {})
    assert decode(cursor, Shapes(), PLAIN, "1", TYPE, body).checkpoint == rest(whole)


def test_names_are_stored_once_for_all_checkpoints(cursor: sqlite3.Cursor) -> None:
    names = [f"a channel with a long name {number}" for number in range(20)]
    shapes = Shapes()
    for count in range(1, 9):
        whole = checkpoint(channel_versions=dict.fromkeys(names, count))
        body = encode(cursor, shapes if count % 2 else Shapes(), PLAIN, whole, {names[0]: b"x"})
        assert len(body) < 120
    assert cursor.execute("SELECT count(*) FROM loopwright_shapes").fetchone() == (1,)


def test_slots_can_be_replaced(cursor: sqlite3.Cursor) -> None:
    shapes = Shapes()
    body = encode(cursor, shapes, PLAIN, checkpoint(), SLOTS)
    other: dict[str, Slot] = {channel: 99 for channel in SLOTS}
    read = decode(cursor, shapes, PLAIN, "1", TYPE, replaced(cursor, shapes, body, other))
    assert (read.checkpoint, read.slots) == (rest(checkpoint()), other)


def test_a_stock_checkpoint_gets_versions_that_can_be_counted_on(cursor: sqlite3.Cursor) -> None:
    text = "00000000000000000000000000000012.0.1234567890123456"
    whole = checkpoint(
        channel_values={"a": [1]},
        channel_versions={"a": text, "b": 3},
        versions_seen={"node": {"a": text}},
    )
    read = decode(cursor, Shapes(), PLAIN, "1", *PLAIN.dumps_typed(whole))
    assert read.versions == {"a": 12, "b": 3}
    assert read.checkpoint["versions_seen"] == {"node": {"a": 12}}
    assert (read.values, read.valued, read.slots) == ({"a": [1]}, {"a"}, {})
