"""The body of a checkpoint: what LangGraph says of versions, in few bytes, and the slots.

The names of channels and nodes are the same in every checkpoint of a graph: they are a shape,
stored once. Stock checkpoints are read here too; what a slot holds is said in `slots`.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from loopwright.state.branches import USUAL
from loopwright.state.slots import Slot

TYPE = "loopwright"
"""What the `type` column says of a row whose format is ours."""

Shape = tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]
"""The channels that have a version, and for each node the channels that it has seen."""

PLAIN = JsonPlusSerializer(allowed_msgpack_modules=None)
"""For our own lists of numbers, strings and bytes; values are in them as bytes already."""

_NAMED = {
    "v",
    "id",
    "ts",
    "channel_values",
    "channel_versions",
    "versions_seen",
    "updated_channels",
}
_SHAPE = "SELECT body FROM loopwright_shapes WHERE id = ?"
_FIND = "SELECT id FROM loopwright_shapes WHERE body = ?"
_ADD = "INSERT INTO loopwright_shapes (body) VALUES (?)"


@dataclass(frozen=True)
class Body:
    """A stored checkpoint; its channel values are in `slots`, those of a stock one in `values`."""

    checkpoint: dict[str, Any]
    slots: dict[str, Slot] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, Any]:
        """The version of each channel."""
        found: dict[str, Any] = self.checkpoint["channel_versions"]
        return found

    @property
    def valued(self) -> set[str]:
        """The channels that have a value."""
        return {*self.slots, *self.values}


class Shapes:
    """The shapes of a file; those that were seen are remembered."""

    def __init__(self) -> None:
        self._numbers: dict[Shape, int] = {}
        self._shapes: dict[int, Shape] = {}

    def forget(self) -> None:
        """For a transaction that failed: what it stored is gone."""
        self._numbers.clear()
        self._shapes.clear()

    def number(self, cursor: sqlite3.Cursor, shape: Shape) -> int:
        """The number under which a shape is stored."""
        known = self._numbers.get(shape)
        if known is not None:
            return known
        channels, nodes = shape
        body = dump([[*channels], [[node, [*names]] for node, names in nodes]])
        row = cursor.execute(_FIND, (body,)).fetchone()
        number = row[0] if row else cursor.execute(_ADD, (body,)).lastrowid
        assert number is not None
        self._remember(number, shape)
        return int(number)

    def shape(self, cursor: sqlite3.Cursor, number: int) -> Shape:
        """The shape that is stored under a number."""
        if number not in self._shapes:
            channels, nodes = parse(cursor.execute(_SHAPE, (number,)).fetchone()[0])
            seen = tuple((node, tuple(names)) for node, names in nodes)
            self._remember(number, (tuple(channels), seen))
        return self._shapes[number]

    def _remember(self, number: int, shape: Shape) -> None:
        self._numbers[shape] = number
        self._shapes[number] = shape


def dump(plain: list[Any]) -> bytes:
    """Lists of lists, numbers, strings and bytes as msgpack."""
    return PLAIN.dumps_typed(plain)[1]


def parse(body: bytes) -> Any:
    """What `dump` made bytes of."""
    return PLAIN.loads_typed((USUAL, body))


def encode(
    cursor: sqlite3.Cursor,
    shapes: Shapes,
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    slots: Mapping[str, Slot],
) -> bytes:
    """The body of a checkpoint whose values are in `slots`. Its id is not in it."""
    versions, seen = checkpoint["channel_versions"], checkpoint["versions_seen"]
    shape = (tuple(versions), tuple((node, tuple(known)) for node, known in seen.items()))
    index = {channel: at for at, channel in enumerate(versions)}
    updated: Any = checkpoint.get("updated_channels", False)
    if updated:
        updated = [index.get(channel, channel) for channel in updated]
    extra = {key: value for key, value in checkpoint.items() if key not in _NAMED}
    return dump(
        [
            shapes.number(cursor, shape),
            checkpoint["v"],
            checkpoint["ts"],
            list(versions.values()),
            [version for known in seen.values() for version in known.values()],
            updated,
            [part for name, slot in slots.items() for part in (index.get(name, name), slot)],
            list(serde.dumps_typed(extra)) if extra else None,
        ]
    )


def decode(
    cursor: sqlite3.Cursor,
    shapes: Shapes,
    serde: SerializerProtocol,
    id: str,
    kind: str,
    body: bytes,
) -> Body:
    """The body of a stored checkpoint, ours or stock."""
    if kind != TYPE:
        return _stock(serde.loads_typed((kind, body)))
    number, v, ts, versions, seen, updated, flat, extra = parse(body)
    channels, nodes = shapes.shape(cursor, number)
    rest = iter(seen)
    checkpoint = {
        "v": v,
        "id": id,
        "ts": ts,
        "channel_versions": dict(zip(channels, versions, strict=True)),
        "versions_seen": {node: dict(zip(names, rest, strict=False)) for node, names in nodes},
        **(serde.loads_typed(tuple(extra)) if extra else {}),
    }
    if updated is not False:
        checkpoint["updated_channels"] = updated and [_named(channels, name) for name in updated]
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return Body(checkpoint, {_named(channels, name): slot for name, slot in pairs})


def replaced(
    cursor: sqlite3.Cursor, shapes: Shapes, body: bytes, slots: Mapping[str, Slot]
) -> bytes:
    """The same body with these slots for its channels; without those that have none here."""
    parts = parse(body)
    channels, _ = shapes.shape(cursor, parts[0])
    pairs = [(name, _named(channels, name)) for name in parts[6][::2]]
    parts[6] = [part for at, name in pairs if name in slots for part in (at, slots[name])]
    return dump(parts)


def _named(channels: tuple[str, ...], name: int | str) -> str:
    return channels[name] if isinstance(name, int) else name


def _stock(checkpoint: dict[str, Any]) -> Body:
    """A checkpoint of the stock saver: its versions become the numbers that we count on."""
    rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
    rest["channel_versions"] = _numbered(checkpoint["channel_versions"])
    seen = checkpoint["versions_seen"].items()
    rest["versions_seen"] = {node: _numbered(versions) for node, versions in seen}
    return Body(rest, values=checkpoint["channel_values"])


def _numbered(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: int(version.split(".")[0]) if isinstance(version, str) else version
        for name, version in versions.items()
    }
