"""Slots: what a checkpoint's body holds for each channel, and how a value becomes one and back.

A slot is None, bytes of the usual serializer type, `[type, bytes]`, the number of a stored value,
or `[branch, start, end]` for rows (with a fourth item for what the list is wrapped in).
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # its only name
from langgraph.types import Overwrite

from loopwright.errors import StateError
from loopwright.state import branches
from loopwright.state.branches import USUAL, Place, Ref, Typed
from loopwright.state.lists import HeldList, common, unedited

Slot = None | int | bytes | list[Any]

INLINE = 1024
"""Bytes up to which a new value stays in the checkpoint's body."""
REPEATED = 96
"""Bytes up to which a value that did not change is repeated in the next body,"""
TINY = 8
"""and bytes up to which it still is when it has not changed for long."""
SHORT_LIST = 256
"""Bytes up to which a list stays in the body."""
FEW = 8
"""A list of more elements than this is not tried for that."""

SNAPSHOT, OVERWRITE = True, "overwrite"
"""The fourth item of rows that are the snapshot of a DeltaChannel, or what replaces a list."""

_FIND = "SELECT id FROM loopwright_values WHERE thread = ? AND hash = ?"
_KEEP = "INSERT INTO loopwright_values (thread, hash, type, body) VALUES (?, ?, ?, ?)"
_VALUE = "SELECT type, body FROM loopwright_values WHERE id = ?"


@dataclass(frozen=True)
class Held:
    """What this process remembers of a stored checkpoint: enough to store its child cheaply."""

    checkpoint: str | None
    versions: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    lists: Mapping[str, HeldList] = field(default_factory=dict)


@dataclass
class Storing:
    """The channel values of one checkpoint on their way into slots.

    `before` is its parent, `remembered` are checkpoints whose lists this one may continue.
    `compared` is how many of a list's last stored elements are compared by content, None for all.
    """

    cursor: sqlite3.Cursor
    serde: SerializerProtocol
    place: Place
    before: Held
    remembered: tuple[Held, ...]
    compared: int | None
    by_version: bool = False
    """Whether a channel whose version is its parent's is not looked at at all."""
    slots: dict[str, Slot] = field(default_factory=dict)
    lists: dict[str, HeldList] = field(default_factory=dict)

    def add(self, channel: str, value: Any, *, changed: bool, old: bool) -> None:
        """Store a channel's value; one that did not change keeps the slot of the parent.

        `old`: it has not changed for so long that it is not worth repeating it.
        """
        snapshot = isinstance(value, _DeltaSnapshot)
        items = value.value if snapshot else value
        before = self.before.slots.get(channel)
        if self.by_version and not changed:
            slot = self._kept(before, TINY if old else REPEATED)
        elif type(items) is list and items:
            # A copy: a Topic extends its own list, maybe while this runs.
            slot = self._list(channel, tuple(items), before, changed, whole=value)
            if snapshot and rows_of(slot):
                slot = [*slot, SNAPSHOT] if isinstance(slot, list) else slot
        elif changed:
            slot = self._value(self.serde.dumps_typed(value))
        else:
            slot = self._kept(before, TINY if old else REPEATED)
        self.slots[channel] = slot

    def all_lists(self) -> dict[str, HeldList]:
        """The lists stored here, and what is remembered of the other channels."""
        known = [held.lists for held in reversed(self.remembered)]
        return {name: held for lists in (*known, self.lists) for name, held in lists.items()}

    def _value(self, typed: Typed) -> Slot:
        if len(typed[1]) > INLINE:
            return keep(self.cursor, self.place.thread, typed)
        return inline(typed)

    def _kept(self, before: Slot, most: int) -> Slot:
        typed = _typed(before)
        if typed is not None and len(typed[1]) > most:
            return keep(self.cursor, self.place.thread, typed)
        return before

    def _list(
        self, channel: str, items: tuple[Any, ...], before: Slot, changed: bool, whole: Any
    ) -> Slot:
        known = rows_of(before)
        held, shared = self._nearest(channel, items, None if changed else known)
        base, tail = self._base(items, held, shared, known)
        if base is None and len(items) <= FEW:
            typed = self.serde.dumps_typed(whole)
            if len(typed[1]) <= SHORT_LIST:
                return inline(typed)
        length = base.length if base else 0
        if held is not None and base == held.ref and length == len(items):
            self.lists[channel] = held
            return [base.branch, 0, length]
        new = [self.serde.dumps_typed(item) for item in items[length:]]
        ref = branches.extend(self.cursor, self.place, channel, base, new)
        tail = last([*tail, *new], self.compared)
        self.lists[channel] = HeldList(ref.branch, items, tuple(tail))
        return [ref.branch, 0, ref.length]

    def _nearest(
        self, channel: str, items: tuple[Any, ...], same: Ref | None
    ) -> tuple[HeldList | None, int]:
        """The remembered list that shares most elements, and how many; `same` shares them all."""
        nearest, most = None, 0
        for checkpoint in self.remembered:
            held = checkpoint.lists.get(channel)
            if held is None:
                continue
            if held.ref == same and len(items) == same.length:
                return held, len(items)
            shared = held.shared(items)
            if shared > most:
                nearest, most = held, shared
        return nearest, most

    def _base(
        self, items: tuple[Any, ...], held: HeldList | None, shared: int, known: Ref | None
    ) -> tuple[Ref | None, list[Typed]]:
        """The stored list that these items continue, and what is known of its last elements."""
        if held is not None and self.compared is not None:
            stored = list(held.tail)
            if shared < held.ref.length:
                start = max(0, shared - self.compared)
                stored = branches.read(self.cursor, Ref(held.branch, shared), start)
            length = unedited(stored, items, shared, self.serde)
            stored = stored[: len(stored) - shared + length]
            return (Ref(held.branch, length) if length else None), stored
        known = held.ref if held is not None else known
        if known is None:
            return None, []
        stored = branches.read(self.cursor, known)
        length = common(stored, items, self.serde)
        return (Ref(known.branch, length) if length else None), stored[:length]


def keep(cursor: sqlite3.Cursor, thread: str, typed: Typed) -> int:
    """The number of this value among the thread's; it is stored unless it is already."""
    kind, body = typed
    digest = blake2b(kind.encode() + b"\0" + body, digest_size=16).digest()
    found = cursor.execute(_FIND, (thread, digest)).fetchone()
    if found is not None:
        return int(found[0])
    cursor.execute(_KEEP, (thread, digest, kind, body))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def load(cursor: sqlite3.Cursor, serde: SerializerProtocol, slot: Slot) -> Any:
    """The value of a slot, made anew. Raises StateError when what it refers to is not stored."""
    typed = _typed(slot)
    if typed is None and isinstance(slot, int):
        typed = cursor.execute(_VALUE, (slot,)).fetchone()
    if typed is not None:
        return serde.loads_typed(typed)
    if not isinstance(slot, list):
        raise StateError(f"value {slot!r} of a checkpoint is not stored: restore a backup")
    return load_list(cursor, serde, slot)[0]


def load_list(
    cursor: sqlite3.Cursor, serde: SerializerProtocol, slot: list[Any], compared: int | None = 0
) -> tuple[Any, HeldList]:
    """The value of a slot of rows, and what to remember of it."""
    branch, start, end = slot[:3]
    stored = branches.read(cursor, Ref(branch, end), start)
    if len(stored) != end - start:
        raise StateError(f"rows of list {branch} are not stored: restore a backup")
    items = [serde.loads_typed(typed) for typed in stored]
    held = HeldList(branch, tuple(items), tuple(last(stored, compared)))
    if slot[3:] == [OVERWRITE]:
        return Overwrite(items), held
    return (_DeltaSnapshot(items) if slot[3:] else items), held


def last(stored: list[Typed], compared: int | None) -> list[Typed]:
    """Of a list's stored elements, those whose content is remembered."""
    return stored[-compared:] if compared else []


def rows_of(slot: Slot) -> Ref | None:
    """The rows that a slot refers to, if it does."""
    if isinstance(slot, list) and not isinstance(slot[0], str):
        return Ref(slot[0], slot[2])
    return None


def inline(typed: Typed) -> Slot:
    """The slot that has the value itself."""
    kind, body = typed
    if kind == "null":
        return None
    return body if kind == USUAL else [kind, body]


def _typed(slot: Slot) -> Typed | None:
    """What is stored in the slot itself."""
    if slot is None:
        return "null", b""
    if isinstance(slot, bytes):
        return USUAL, slot
    if isinstance(slot, list) and isinstance(slot[0], str):
        return slot[0], slot[1]
    return None
