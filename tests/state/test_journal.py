"""The journal: what is noted of a call decides what becomes of it, and is told by its own name."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.state.database import Database
from loopwright.state.journal import (
    Journal,
    Known,
    carry_over,
    fingerprint,
    idempotency_key,
    look_up,
)
from loopwright.state.log import Log, MemoryLog
from loopwright.state.messages import Call
from loopwright.state.sqlite_log import SqliteLog

pytestmark = pytest.mark.anyio

A, B, C = (Call(id, "book", {"seat": id}) for id in "abc")


class CountingLog(MemoryLog):
    """A log that counts its commits, and says which of them were to survive a power loss."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[bool] = []

    async def commit(self, thread: str, kind: str, bodies: Any, **options: Any) -> list[int]:
        self.commits.append(options["full"])
        return await super().commit(thread, kind, bodies, **options)


def journal(log: Log | None, message_id: str = "m", *, full: bool = False) -> Journal:
    made = Journal(log, "t", message_id, full)
    made.use()
    return made


async def fates(log: Log, *calls: Call, thread: str = "t", message: str = "m") -> list[str]:
    known = (await look_up(log, thread, [message]))[message]
    return [known.fate(call).kind for call in calls]


@pytest.fixture
def log() -> Iterator[SqliteLog]:
    """A log that keeps what is known of every message."""
    with closing(Database()) as database:
        yield SqliteLog(database)


async def test_a_call_goes_from_waiting_to_finished() -> None:
    log = MemoryLog()
    noting = journal(log)
    assert await fates(log, A) == ["unknown"]
    await noting.waiting([A])
    assert await fates(log, A) == ["not_started"]
    await noting.started([A])
    assert await fates(log, A) == ["started"]
    await noting.asking(A)
    assert await fates(log, A) == ["asking"]
    await noting.started([A])
    await noting.finished(A, {"content": "done"})
    await noting.started([A])
    (known,) = (await look_up(log, "t", ["m"])).values()
    assert (known.fate(A).kind, known.fate(A).result) == ("finished", {"content": "done"})


async def test_what_was_not_noted_beside_others_never_started() -> None:
    log = MemoryLog()
    await journal(log).started([A])
    assert await fates(log, A, B) == ["started", "not_started"]
    assert await fates(log, B, message="another") == ["unknown"]
    assert await fates(log, A, thread="another") == ["unknown"]


async def test_a_call_with_other_arguments_is_another_call() -> None:
    log = MemoryLog()
    await journal(log).finished(A, {"content": "done"})
    assert await fates(log, Call("a", "book", {"seat": "z"})) == ["not_started"]


async def test_all_that_start_together_are_one_commit_and_refusals_go_with_them() -> None:
    log = CountingLog()
    noting = journal(log)
    noting.refused(A, {"content": "no"})
    await noting.started([])
    assert log.commits == []
    await noting.started([B, C])
    assert len(log.commits) == 1
    assert await fates(log, A, B, C) == ["finished", "started", "started"]
    await noting.started([B])
    assert len(log.read("t", ["journal/m"])) == 4


@pytest.mark.parametrize("kept", [True, False])
async def test_nothing_is_committed_before_it_is_used_or_where_nothing_is_kept(kept: bool) -> None:
    log = CountingLog()
    noting = Journal(log if kept else None, "t", "m")
    if not kept:
        noting.use()
    await noting.started([A])
    await noting.finished(A, {})
    assert (log.commits, noting.in_use) == ([], False)


async def test_a_commit_may_be_told_to_wait_for_the_disk() -> None:
    log = CountingLog()
    await journal(log, full=True).started([A])
    await journal(log).started([B])
    assert log.commits == [True, False]


async def test_a_look_up_is_one_read_for_several_messages(log: SqliteLog) -> None:
    await journal(log, "m").started([A])
    await journal(log, "n").finished(B, {})
    known = await look_up(log, "t", ["m", "n", "o"])
    assert [known["m"].fate(A).kind, known["n"].fate(B).kind] == ["started", "finished"]
    assert known["o"] == Known()


async def test_a_copy_of_a_thread_takes_over_what_one_message_s_calls_did(log: SqliteLog) -> None:
    await journal(log).started([A, B])
    await journal(log).finished(A, {"content": "done"})
    await journal(log, "later").started([C])
    carry_over(log, "t", "copy", "m")
    log.delete("t")
    assert await fates(log, A, B, thread="copy") == ["finished", "started"]
    assert await fates(log, C, thread="copy", message="later") == ["unknown"]
    carry_over(log, "nobody", "copy", "m")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


@given(OBJECTS, st.randoms())
def test_the_order_of_keys_is_no_difference(arguments: dict[str, Any], order: Any) -> None:
    items = list(arguments.items())
    order.shuffle(items)
    assert fingerprint(dict(items)) == fingerprint(arguments)
    assert idempotency_key("t", "m", "c", dict(items)) == idempotency_key("t", "m", "c", arguments)


@given(*[st.tuples(st.text(), st.text(), st.text(), OBJECTS)] * 2)
def test_every_call_has_an_idempotency_key_of_its_own(one: Any, other: Any) -> None:
    same = idempotency_key(*one) == idempotency_key(*other)
    assert same == (fingerprint([*one]) == fingerprint([*other]))
