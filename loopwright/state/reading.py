"""Stored checkpoints as LangGraph takes them: tuples, and the history of DeltaChannels.

Everything reads in the caller's transaction; values are made anew at every read.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from loopwright.state.bodies import TYPE, Body, Shapes, decode
from loopwright.state.branches import Place
from loopwright.state.lists import HeldList
from loopwright.state.pending import Waiting, entries, loaded
from loopwright.state.slots import Held, load, load_list, rows_of

PAST = '{"loopwright_past":true}'
"""The metadata of what is left of a deleted checkpoint that DeltaChannels are rebuilt from."""
VISIBLE = f"CAST(metadata AS TEXT) IS NOT '{PAST}'"
"""The SQL condition of checkpoints that are not deleted."""

_COLUMNS = "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
_NAMED = f"{_COLUMNS} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_NEWEST = (
    f"{_COLUMNS} WHERE thread_id = ? AND checkpoint_ns = ? AND {VISIBLE}"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)
_OF_A_PLACE = f"{_COLUMNS} WHERE thread_id = ? AND checkpoint_ns = ?"
_OURS = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
    " FROM checkpoints WHERE thread_id = ? AND type = ?"
)
_REMOVALS = "SELECT number FROM loopwright_removals"


@dataclass(frozen=True)
class Stored:
    """A row of `checkpoints`."""

    id: str
    parent: str | None
    kind: str
    body: bytes
    metadata: bytes | None


@dataclass(frozen=True)
class Reading:
    """Reads of one transaction."""

    cursor: sqlite3.Cursor
    serde: SerializerProtocol
    shapes: Shapes

    def removals(self) -> int:
        """How often rows or values have been deleted."""
        (number,) = self.cursor.execute(_REMOVALS).fetchone()
        return int(number)

    def row(self, place: Place, id: str | None) -> Stored | None:
        """The checkpoint with this id, or the newest one of the place."""
        query, key = (f"{_NAMED} AND {VISIBLE}", (*place, id)) if id else (_NEWEST, place)
        row = self.cursor.execute(query, key).fetchone()
        return None if row is None else Stored(*row)

    def ancestor(self, place: Place, id: str) -> Stored | None:
        """The checkpoint with this id, or what is left of it."""
        row = self.cursor.execute(_NAMED, (*place, id)).fetchone()
        return None if row is None else Stored(*row)

    def stored(self, place: Place) -> dict[str, Stored]:
        """All checkpoints of a place by their id, and what is left of deleted ones."""
        rows = self.cursor.execute(_OF_A_PLACE, place)
        return {row[0]: Stored(*row) for row in rows.fetchall()}

    def ours(self, thread: str) -> list[tuple[str, Stored]]:
        """The checkpoints of a thread whose format is ours, each with its namespace."""
        rows = self.cursor.execute(_OURS, (thread, TYPE)).fetchall()
        return [(row[0], Stored(*row[1:])) for row in rows]

    def body(self, row: Stored) -> Body:
        """The body of a stored checkpoint; no value of ours is loaded."""
        return decode(self.cursor, self.shapes, self.serde, row.id, row.kind, row.body)

    def held(self, place: Place, id: str | None) -> Held:
        """What is to be known of a checkpoint to store its child."""
        row = self.ancestor(place, id) if id else None
        if row is None:
            return Held(id)
        body = self.body(row)
        return Held(id, body.versions, body.slots)

    def whole(
        self, place: Place, row: Stored, waiting: Waiting, compared: int | None
    ) -> tuple[CheckpointTuple, Held]:
        """A stored checkpoint with its values and pending writes, and what to remember of it."""
        body = self.body(row)
        values, lists = dict(body.values), dict[str, HeldList]()
        for channel, slot in body.slots.items():
            if rows_of(slot):
                values[channel], lists[channel] = load_list(
                    self.cursor, self.serde, cast(list[Any], slot), compared
                )
            else:
                values[channel] = load(self.cursor, self.serde, slot)
        writes = entries(self.cursor, place, row.id, self.serde, waiting.at(place))
        found = CheckpointTuple(
            config_of(place, row.id),
            cast(Any, {**body.checkpoint, "channel_values": values}),
            json.loads(row.metadata) if row.metadata is not None else {},
            config_of(place, row.parent) if row.parent else None,
            loaded(self.cursor, self.serde, writes),
        )
        return found, Held(row.id, body.versions, body.slots, lists)

    def delta_history(
        self, place: Place, id: str | None, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel its nearest stored value above a checkpoint, and the writes since."""
        target = self.row(place, id)
        seeds, depths, walked = self._ancestors(place, target, channels)
        history: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
        for channel, seed in seeds.items():
            history[channel]["seed"] = seed
        for at in reversed(range(len(walked))):
            found = entries(self.cursor, place, walked[at], self.serde)
            wanted = [entry for entry in found if depths.get(entry.channel, 0) > at]
            for write in loaded(self.cursor, self.serde, wanted):
                history[write[1]]["writes"].append(write)
        return history

    def _ancestors(
        self, place: Place, target: Stored | None, channels: Sequence[str]
    ) -> tuple[dict[str, Any], dict[str, int], list[str]]:
        """The walk up from a checkpoint until each channel has a stored value: these values, how
        many ancestors count for each channel, and the ancestors."""
        seeds: dict[str, Any] = {}
        walked: list[str] = []
        depths = dict.fromkeys(channels, 0)
        seen = {target.id} if target else set()
        row = target
        while row and row.parent and row.parent not in seen and len(seeds) < len(depths):
            row = self.ancestor(place, row.parent)
            if row is None:
                break
            seen.add(row.id)
            walked.append(row.id)
            body = self.body(row)
            for channel in [name for name in depths if name not in seeds]:
                depths[channel] += 1
                if channel in body.valued:
                    seeds[channel] = self._value(body, channel)
        return seeds, depths, walked

    def _value(self, body: Body, channel: str) -> Any:
        if channel in body.values:
            return body.values[channel]
        return load(self.cursor, self.serde, body.slots[channel])


def config_of(place: Place, id: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": id,
        }
    }


def place_of(config: RunnableConfig) -> Place:
    """The thread and namespace that a config names."""
    configurable = config["configurable"]
    return Place(str(configurable["thread_id"]), str(configurable.get("checkpoint_ns", "")))
