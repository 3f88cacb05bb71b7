"""Lists as rows: each element is stored once, and branches share the rows below their fork.

Which elements of a list are stored already is found out in `lists`.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

Typed = tuple[str, bytes]
"""What a serializer makes of a value: its type and its bytes."""

USUAL = "msgpack"

_START = (
    "INSERT INTO loopwright_branches (thread, namespace, channel, parent, fork)"
    " VALUES (?, ?, ?, ?, ?)"
)
_BRANCH = "SELECT parent, fork FROM loopwright_branches WHERE branch = ?"
_LAST = "SELECT max(position) FROM loopwright_rows WHERE branch = ?"
_APPEND = "INSERT INTO loopwright_rows (branch, position, type, body) VALUES (?, ?, ?, ?)"
_SEGMENTS = """
WITH RECURSIVE segment (branch, parent, fork, until) AS (
    SELECT branch, parent, fork, ?1 FROM loopwright_branches WHERE branch = ?2
    UNION ALL
    SELECT below.branch, below.parent, below.fork, min(segment.fork, segment.until)
    FROM segment JOIN loopwright_branches AS below ON below.branch = segment.parent
    WHERE segment.fork > ?3
)
SELECT branch, max(fork, ?3), until FROM segment
"""
_ROWS = (
    "SELECT coalesce(type, 'msgpack'), body FROM loopwright_rows"
    " WHERE branch = ? AND position >= ? AND position < ? ORDER BY position"
)


class Place(NamedTuple):
    """What a checkpoint belongs to: a thread, and the namespace of a (sub)graph in it."""

    thread: str
    namespace: str


class Ref(NamedTuple):
    """The first `length` elements of a branch."""

    branch: int
    length: int


def extend(
    cursor: sqlite3.Cursor, place: Place, channel: str, base: Ref | None, new: Sequence[Typed]
) -> Ref:
    """The list that has the elements of `base`, then the new ones.

    They are appended to the branch of `base` if that ends there; else a new branch forks off.
    """
    if base is not None and not new:
        return base
    if base is None:
        branch, length = _start(cursor, place, channel, None, 0), 0
    elif _end(cursor, base.branch) == base.length:
        branch, length = base
    else:
        branch, length = fork(cursor, place, channel, base), base.length
    cursor.executemany(
        _APPEND,
        [
            (branch, position, None if kind == USUAL else kind, body)
            for position, (kind, body) in enumerate(new, length)
        ],
    )
    return Ref(branch, length + len(new))


def read(cursor: sqlite3.Cursor, ref: Ref, start: int = 0) -> list[Typed]:
    """The stored elements from `start` to the end of `ref`; fewer if rows are missing."""
    if start >= ref.length:
        return []
    segments = cursor.execute(_SEGMENTS, (ref.length, ref.branch, start)).fetchall()
    found: list[Typed] = []
    for segment in reversed(segments):
        found += cursor.execute(_ROWS, segment).fetchall()
    return found


def fork(cursor: sqlite3.Cursor, place: Place, channel: str, base: Ref) -> int:
    """A new branch behind `base`, of whatever thread; its parent has the rows just below."""
    parent: int | None = base.branch
    while parent is not None:
        above, start = cursor.execute(_BRANCH, (parent,)).fetchone()
        if start < base.length:
            break
        parent = above
    return _start(cursor, place, channel, parent, base.length)


def _start(
    cursor: sqlite3.Cursor, place: Place, channel: str, parent: int | None, fork: int
) -> int:
    cursor.execute(_START, (*place, channel, parent, fork))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _end(cursor: sqlite3.Cursor, branch: int) -> int | None:
    (last,) = cursor.execute(_LAST, (branch,)).fetchone()
    return None if last is None else int(last) + 1
