"""One run of a thread over all processes: taken, refused, renewed, lost and given back."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopwright.errors import BusyThreadError, DatabaseError, LeaseLostError
from loopwright.state import lease_table, owner
from loopwright.state.aborts import request_abort
from loopwright.state.database import Database
from loopwright.state.lease import Lease, Leases
from loopwright.state.lease_table import EXPIRY, LEASE_KEY, LeaseTable, holds, require
from loopwright.state.owner import Process, this_process
from loopwright.state.sqlite_log import SqliteLog
from loopwright.testing import VirtualClock
from tests.support.processes import output, start

pytestmark = pytest.mark.anyio

Begin = Callable[..., "Stand"]


class Stand:
    """One process's stand at the file: its claims, and its table with a clock of the test's."""

    def __init__(self, path: Path, clock: VirtualClock, **options: Any) -> None:
        self.database = Database(path)
        self.flushed: list[str] = []
        self.table = LeaseTable(self.database, self.flushed.append, clock=clock, **options)
        self.leases = Leases()

    async def take(self, thread: str = "t", namespace: str = "", *, run: str = "run") -> Lease:
        """Claim a thread and enter it."""
        lease = self.leases.claim(thread, namespace)
        try:
            await self.table.take(lease, run)
        except BusyThreadError:
            lease.release()
            await lease.released()
            raise
        return lease

    def rows(self) -> list[tuple[Any, ...]]:
        """Who runs what: thread, namespace, run and expiry."""
        with self.database.transaction() as cursor:
            query = "SELECT thread, namespace, run, expires FROM loopwright_leases ORDER BY 1, 2"
            return cursor.execute(query).fetchall()

    def require(self, lease: Lease) -> None:
        """Fail as a write under a lost lease does."""
        with self.database.transaction() as cursor:
            require(cursor, lease)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture
def begin(tmp_path: Path, clock: VirtualClock) -> Iterator[Begin]:
    """Makes stands at one file."""
    made: list[Stand] = []

    def one(**options: Any) -> Stand:
        made.append(Stand(tmp_path / "t.db", clock, **options))
        return made[-1]

    yield one
    for stand in made:
        stand.database.close()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[Process | None], None]:
    """Makes what follows the work of another process, None: of this one again."""
    me = this_process()

    def be(other: Process | None) -> None:
        monkeypatch.setattr(lease_table, "this_process", lambda: other or me)
        monkeypatch.setattr(os, "getpid", lambda: (other or me).number)

    return be


OTHER = Process("another machine", "box", 4242, "77")


async def test_a_thread_that_is_run_elsewhere_is_refused_and_the_holder_named(
    begin: Begin, elsewhere: Any
) -> None:
    elsewhere(OTHER)
    held = await begin().take()
    elsewhere(None)
    here = begin()
    with pytest.raises(BusyThreadError) as refused:
        await here.take(run="mine")
    said = str(refused.value)
    assert said.startswith("thread 't' is busy: process 4242 on box has run it since 20")
    assert "with a lease until 1970-01-01 00:17:10 UTC; wait for its run to end" in said
    holder = refused.value.holder
    assert holder is not None
    assert (holder.since, holder.expires) == (held.claimed, 1000.0 + EXPIRY)
    assert [row[2] for row in here.rows()] == ["run"]
    with pytest.raises(BusyThreadError):  # and what was refused is not held here either
        await here.take(run="mine")


async def test_a_refusal_writes_nothing(begin: Begin, elsewhere: Any) -> None:
    elsewhere(OTHER)
    await begin().take()
    elsewhere(None)
    here, told = begin(), list[str]()
    here.database.connection.set_trace_callback(told.append)
    with pytest.raises(BusyThreadError):
        await here.take(run="mine")
    here.database.connection.set_trace_callback(None)
    words = [text.split()[0] for text in told]
    assert [word for word in words if word != "PRAGMA"] == ["BEGIN", "SELECT", "ROLLBACK"]


async def test_who_changes_an_idle_thread_takes_it_from_a_run_that_is_silent(
    begin: Begin, clock: VirtualClock
) -> None:
    slow, here = begin(), begin()
    lease = await slow.take(namespace="node:1")
    slow.table._watch.close()
    with pytest.raises(BusyThreadError):
        here.table.require_idle("t")
    here.table.require_idle("another")
    clock.advance(EXPIRY)
    slow.require(lease)
    here.table.require_idle("t")
    with pytest.raises(LeaseLostError):
        slow.require(lease)


async def test_other_threads_and_namespaces_are_free(begin: Begin) -> None:
    one, two = begin(), begin()
    await one.take()
    await two.take("u", run="a")
    await two.take("t", "node:1", run="b")
    assert [row[:3] for row in one.rows()] == [
        ("t", "", "run"),
        ("t", "node:1", "b"),
        ("u", "", "a"),
    ]


async def test_a_released_thread_is_free_and_what_waited_for_it_is_written_first(
    begin: Begin,
) -> None:
    one, two = begin(), begin()
    lease = await one.take()
    lease.release()
    await lease.released()
    assert (one.flushed, one.rows()) == (["t"], [])
    await two.take()


async def test_a_lease_that_was_not_renewed_is_free_when_it_expires(
    begin: Begin, clock: VirtualClock, elsewhere: Any
) -> None:
    elsewhere(OTHER)
    await begin().take()
    elsewhere(None)
    clock.advance(EXPIRY - 1)
    here = begin()
    with pytest.raises(BusyThreadError):
        await here.take(run="mine")
    clock.advance(1)
    await here.take(run="mine")


@pytest.mark.parametrize(
    "gone",
    [{"began": "1"}, {"number": 2**22 + 1}],
    ids=["its number belongs to another process now", "there is no such process"],
)
async def test_a_dead_process_of_this_machine_holds_nothing(
    begin: Begin, elsewhere: Any, gone: dict[str, Any]
) -> None:
    elsewhere(replace(this_process(), **gone))
    await begin().take()
    elsewhere(None)
    await begin().take(run="mine")


async def test_a_live_process_of_this_machine_keeps_what_it_holds(
    begin: Begin, elsewhere: Any
) -> None:
    parent = os.getppid()
    elsewhere(replace(this_process(), number=parent, began=owner._began(parent) or ""))
    await begin().take()
    elsewhere(None)
    with pytest.raises(BusyThreadError):
        await begin().take(run="mine")


async def test_two_in_one_process_are_kept_apart_too(begin: Begin) -> None:
    one, two = begin(), begin()
    await one.take()
    with pytest.raises(BusyThreadError):
        await two.take(run="mine")
    await one.take("u", run="other")


def test_a_lease_is_renewed_at_a_third_of_its_expiry_and_not_before(
    begin: Begin, clock: VirtualClock
) -> None:
    stand = begin(expiry=30.0)
    asyncio.run(stand.take())
    stand.table._watch.close()
    for passed, expires in ((9, 1030.0), (1, 1040.0), (9, 1040.0), (50, 1099.0), (-500, 599.0)):
        clock.advance(passed)
        stand.table._look()
        assert stand.rows() == [("t", "", "run", expires)]


def test_the_watch_renews_and_hears_aborts_while_something_runs(
    begin: Begin, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = begin()
    renewed, heard = threading.Event(), threading.Event()
    renew = stand.table._renew

    def renewing(leases: list[Lease], expires: float) -> None:
        renew(leases, expires)
        renewed.set()

    monkeypatch.setattr(stand.table, "_renew", renewing)
    lease = asyncio.run(stand.take())
    lease.signal.on_abort(heard.set)
    clock.advance(EXPIRY / 2)
    assert renewed.wait(60)
    request_abort(SqliteLog(begin().database), "t", "enough")
    assert heard.wait(60)
    assert lease.signal.reason == "enough"
    assert stand.rows()[0][3] == 1000 + 1.5 * EXPIRY


async def test_one_that_was_taken_over_writes_nothing_more_and_is_told(
    begin: Begin, clock: VirtualClock, elsewhere: Any
) -> None:
    slow = begin()
    lease = await slow.take(run="slow")
    slow.table._watch.close()
    slow.require(lease)
    clock.advance(EXPIRY)
    slow.require(lease)  # nobody has taken it
    fast = begin()
    elsewhere(OTHER)
    other = await fast.take(run="fast")
    elsewhere(None)
    with pytest.raises(LeaseLostError, match="run slow of thread 't' was suspended") as lost:
        slow.require(lease)
    assert (lost.value.thread, lost.value.run_id) == ("t", "slow")
    slow.table._look()
    assert lease.signal.reason == "the thread was taken over by another process"
    lease.release()
    await lease.released()
    assert [row[2] for row in slow.rows()] == ["fast"]
    assert not other.signal.aborted


def test_a_lease_that_is_given_back_while_it_is_renewed_is_not_told_to_be_lost(
    begin: Begin,
) -> None:
    stand = begin()
    lease = asyncio.run(stand.take())
    stand.table._release(lease)
    stand.table._renew([lease], 0.0)
    assert not lease.signal.aborted


async def test_a_caller_that_is_cancelled_while_it_takes_a_thread_gives_it_back(
    begin: Begin,
) -> None:
    stand = begin()
    lease = stand.leases.claim("t")
    with stand.database.lock:  # what takes it waits here
        taking = asyncio.ensure_future(stand.table.take(lease, "run"))
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait([taking])
        lease.release()
    await lease.released()
    assert stand.rows() == []


async def test_a_release_that_fails_hides_nothing_and_this_process_may_take_the_thread(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, elsewhere: Any
) -> None:
    stand = begin()

    def full(thread: str) -> None:
        raise DatabaseError("t.db", "disk is full", "free some space")

    monkeypatch.setattr(stand.table, "_flush", full)
    lease = await stand.take()
    lease.release()
    await lease.released()
    assert len(stand.rows()) == 1
    elsewhere(OTHER)
    with pytest.raises(BusyThreadError):  # for others it has to expire
        await begin().take(run="theirs")
    elsewhere(None)
    await stand.take(run="next")


async def test_a_database_in_memory_has_no_rows() -> None:
    database = Database(None)
    table = LeaseTable(database)
    lease = Leases().claim("t")
    await table.take(lease, "run")
    assert lease.register is None
    assert table.lease_of({"configurable": {"thread_id": "t", LEASE_KEY: lease}}) is None
    database.close()


async def test_closing_gives_back_what_is_held(begin: Begin) -> None:
    one, two = begin(), begin()
    lease = await one.take()
    one.database.close()
    await lease.released()
    assert two.rows() == []
    lease.release()
    one.leases.claim("t").release()


async def test_a_release_behind_the_close_is_one_too(begin: Begin) -> None:
    one = begin()
    lease = await one.take()
    await one.database.hop(lambda: None)
    executor: Any = one.database._executor
    executor.shutdown()
    lease.release()
    await lease.released()
    assert one.rows() == []


async def test_the_lease_of_a_config_is_that_of_its_own_place_and_file(
    begin: Begin, tmp_path: Path
) -> None:
    stand, database = begin(), Database(tmp_path / "other.db")
    lease = await stand.take("t", "n")

    def found(table: LeaseTable, thread: str, namespace: str) -> Lease | None:
        place = {"thread_id": thread, "checkpoint_ns": namespace}
        return table.lease_of({"configurable": {**place, LEASE_KEY: lease}})

    assert found(stand.table, "t", "n") is lease
    assert found(stand.table, "t", "") is found(stand.table, "u", "n") is None
    assert found(LeaseTable(database), "t", "n") is None
    assert stand.table.lease_of({"configurable": {"thread_id": "t"}}) is None
    with stand.database.transaction() as cursor:
        assert holds(cursor, None)
    database.close()


def test_a_forked_child_neither_has_nor_gives_back_what_its_parent_holds(tmp_path: Path) -> None:
    script = """
        import asyncio, os, sys, threading
        from loopwright.errors import BusyThreadError, LeaseLostError
        from loopwright.state.database import Database
        from loopwright.state.lease_table import LeaseTable, require

        async def take(run, thread="t"):
            lease = table.local.claim(thread)
            try:
                await table.take(lease, run)
            finally:
                if lease.run == "child":
                    lease.release()
                    await lease.released()
            return lease

        database = Database(sys.argv[1])
        table = LeaseTable(database)
        lease = asyncio.run(take("parent"))
        child = os.fork()
        if child == 0:
            code = 0
            try:
                asyncio.run(take("child"))
            except BusyThreadError as busy:
                code += busy.holder.process == os.getppid()
            try:
                with database.transaction() as cursor:
                    require(cursor, lease)
            except LeaseLostError:
                code += 2
            lease.release()
            asyncio.run(lease.released())
            asyncio.run(take("child's own", "u"))
            code += 4 * any(t.name == "loopwright-watch" for t in threading.enumerate())
            database.close()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with database.transaction() as cursor:
            require(cursor, lease)
        database.close()
        print(code)
    """
    assert output(script, tmp_path / "t.db") == "7"


def test_a_kill_right_behind_the_commit_leaves_a_row_that_holds_nothing(
    begin: Begin, tmp_path: Path
) -> None:
    script = """
        import asyncio, os, signal, sys
        from loopwright import failpoints
        from loopwright.state.database import Database
        from loopwright.state.lease_table import LeaseTable

        failpoints.arm("lease", lambda: os.kill(os.getpid(), signal.SIGKILL))
        table = LeaseTable(Database(sys.argv[1]))
        asyncio.run(table.take(table.local.claim("t"), "killed"))
    """
    with start(script, tmp_path / "t.db") as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its parent has not looked yet
        stand = begin()
        assert [row[2] for row in stand.rows()] == ["killed"]
        asyncio.run(stand.take(run="next"))
    assert process.returncode == -signal.SIGKILL
