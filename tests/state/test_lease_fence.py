"""What a saver writes for a run: only while the run's lease is the thread's."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from loopwright.errors import LeaseLostError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.journal import Journal, recall
from loopwright.state.lease import Lease
from loopwright.state.lease_table import LEASE_KEY
from loopwright.state.messages import Call
from loopwright.state.sqlite_log import SqliteLog

pytestmark = pytest.mark.anyio


@dataclass
class Held:
    """A thread with a checkpoint whose run holds it, and what another process sees of it."""

    saver: SqliteCheckpointer
    elsewhere: SqliteCheckpointer
    lease: Lease = field(init=False)
    config: Any = field(init=False)

    async def begin(self) -> None:
        self.lease = self.saver.leases.local.claim("t")
        await self.saver.leases.take(self.lease, "run")
        place = {"thread_id": "t", "checkpoint_ns": "", LEASE_KEY: self.lease}
        self.config = {"configurable": place}
        self.put()

    def put(self) -> None:
        """Store the next checkpoint."""
        stored = self.saver.put(self.config, empty_checkpoint(), {}, {})
        self.config["configurable"].update(stored["configurable"])

    def write(self, *channels: str, task: str = "task") -> None:
        """What a task has written."""
        self.saver.put_writes(self.config, [(channel, 1) for channel in channels], task)

    def lose(self) -> None:
        """Another process takes the thread."""
        with self.saver.database.transaction() as cursor:
            cursor.execute("UPDATE loopwright_leases SET run = 'theirs', machine = 'another'")

    def seen(self) -> tuple[int, int]:
        """How many checkpoints, and writes of the newest, another process sees."""
        with self.elsewhere.database.transaction() as cursor:
            (checkpoints,) = cursor.execute("SELECT count(*) FROM checkpoints").fetchone()
        found = self.elsewhere.get_tuple({"configurable": {"thread_id": "t"}})
        return checkpoints, len(found.pending_writes or ()) if found else 0


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Held]:
    made = Held(
        SqliteCheckpointer(tmp_path / "t.db", fold_writes=True),
        SqliteCheckpointer(tmp_path / "t.db"),
    )
    await made.begin()
    yield made
    made.saver.close()
    made.elsewhere.close()


async def test_a_run_that_holds_its_thread_writes_what_it_likes(held: Held) -> None:
    held.write("a")
    held.put()
    held.write("__interrupt__")
    assert held.seen() == (2, 1)


async def test_a_run_that_lost_it_writes_neither_checkpoints_nor_results(held: Held) -> None:
    held.lose()
    for attempt in (held.put, lambda: held.write("__interrupt__")):
        with pytest.raises(LeaseLostError):
            attempt()
    held.write("a")  # waits for its checkpoint
    with pytest.raises(LeaseLostError):
        held.write("b", task="a sibling")
    with pytest.raises(LeaseLostError):
        held.put()
    held.saver.flush()
    assert held.seen() == (1, 0)


async def test_what_waits_is_seen_by_others_before_they_can_take_the_thread(held: Held) -> None:
    held.write("a")
    assert held.seen() == (1, 0)
    held.lease.release()
    await held.lease.released()
    assert held.seen() == (1, 1)


async def test_a_thread_that_was_given_back_takes_no_late_writes(held: Held) -> None:
    held.lease.release()
    await held.lease.released()
    with pytest.raises(LeaseLostError):
        held.put()


async def test_who_writes_without_a_lease_is_not_asked_for_one(held: Held) -> None:
    held.lose()
    del held.config["configurable"][LEASE_KEY]
    held.put()
    assert held.seen() == (2, 0)


async def test_a_release_commits_nothing_of_other_threads(held: Held) -> None:
    held.write("a")
    other = held.saver.leases.local.claim("other")
    await held.saver.leases.take(other, "second")
    other.release()
    await other.released()
    assert held.seen() == (1, 0)


async def test_a_run_that_lost_it_starts_no_call_but_its_finished_ones_are_noted(
    held: Held,
) -> None:
    log = SqliteLog(held.saver.database)
    journal = Journal(log, "t", "message", lease=held.lease, in_use=True)
    call = Call(id="c", name="send", arguments={})
    await journal.started([call])
    held.lose()
    with pytest.raises(LeaseLostError):
        await journal.started([Call(id="d", name="send", arguments={})])
    await journal.finished(call, {"content": "sent"})
    fates = recall(log, "t", "message").fates
    assert [(id, fate.kind) for (id, _), fate in fates.items()] == [("c", "finished")]


async def test_a_log_in_another_file_knows_nothing_of_a_lease(held: Held, tmp_path: Path) -> None:
    held.lose()
    other = Database(tmp_path / "other.db")
    log = SqliteLog(other)
    assert await log.commit("t", "kind", [1], lease=held.lease) == [1]
    other.close()
