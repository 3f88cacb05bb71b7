"""A disk that is full, a file that is locked, cut, read-only, gone or newer: a clear error, and the
same agent and a new process go on with everything that was acknowledged.
"""

import asyncio
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from loopwright import Agent
from loopwright.errors import DatabaseError, UnknownThreadError
from loopwright.events import MessageEnd
from loopwright.state import connecting
from loopwright.state.doctor import examine
from loopwright.state.mending import mend
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.cli.running import loopwright
from tests.support.processes import output


def turns(count: int, name: str) -> list[Any]:
    """A script with so many tool turns and an answer."""
    calls = [Response(calls=[(f"{name}{at}", "work", {"at": at})]) for at in range(count)]
    return [*calls, f"{name} is done"]


class Worker:
    """An agent with a tool whose effects are counted, and what it has acknowledged so far."""

    def __init__(self, path: Path | None, *script: Any) -> None:
        self.effects: list[int] = []
        self.acknowledged: list[str] = []

        def work(at: int) -> str:
            """Work."""
            self.effects.append(at)
            return os.urandom(2000).hex()

        self.agent = Agent(ScriptedModel(list(script)), [work], database=path, thread="mine")

    async def run(self, prompt: str) -> None:
        """A run, whose complete messages are acknowledged as they come. Raises DatabaseError."""
        async for event in self.agent.stream(prompt):
            if isinstance(event, MessageEnd):
                self.acknowledged.append(str(event.message.id))

    async def trouble(self, prompt: str) -> str:
        """What a run is told of the file: it raises, or fails if that itself could be stored."""
        try:
            await self.run(prompt)
        except DatabaseError as error:
            return str(error)
        return self.agent.state.error_message or ""

    def steer(self, text: str) -> None:
        self.agent.steer(text)

    def database(self) -> Any:
        return self.agent._storage.checkpointer.database  # type: ignore[attr-defined]

    def limit(self, pages: int | None) -> None:
        """Let the file grow by so many pages only; None: as far as it likes."""
        with self.database().transaction() as cursor:
            (now,) = cursor.execute("PRAGMA page_count").fetchone()
            most = 2**30 if pages is None else now + pages
            cursor.execute(f"PRAGMA max_page_count={most}")

    def check(self) -> None:
        """Memory and file agree, and everything that was acknowledged is there once."""
        stored = [str(message.id) for message in self.agent.messages()]
        assert [str(message.id) for message in self.agent.state.messages] == stored
        assert not self.agent.state.is_streaming
        assert [stored.count(id) for id in self.acknowledged] == [1] * len(self.acknowledged)


ELSEWHERE = """
    import sys
    from loopwright import Agent
    from loopwright.state.transcript import faults
    from loopwright.testing import ScriptedModel
    with Agent(ScriptedModel(["elsewhere"]), database=sys.argv[1], thread="mine") as agent:
        print(agent.run("go on").status)
        assert faults(agent.messages()) == []
        print(*(message.id for message in agent.messages()))
"""


def goes_on_elsewhere(path: Path, acknowledged: list[str]) -> None:
    """A new process runs the thread, which has everything that was acknowledged."""
    status, ids = output(ELSEWHERE, path).split("\n")
    assert status == "completed"
    assert [ids.split().count(id) for id in acknowledged] == [1] * len(acknowledged)


@pytest.mark.parametrize("pages", [0, 2, 5, 9])
@pytest.mark.anyio
async def test_after_the_disk_was_full_the_thread_goes_on(pages: int, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    worker = Worker(path, *turns(2, "a"), *turns(6, "b"), *turns(2, "c"))
    async with worker.agent:
        await worker.run("one")
        worker.check()
        worker.steer("steered")
        worker.limit(pages)
        assert re.search(r"t\.db.*full; free some disk space", await worker.trouble("two"))
        worker.check()
        worker.limit(None)
        await worker.run("three")
        worker.check()
        assert faults(worker.agent.messages()) == []
        texts = [str(message.text) for message in worker.agent.messages()]
        assert texts.count("steered") == 1
    assert {finding.where for finding in examine(path).findings} <= {"table writes"}
    goes_on_elsewhere(path, worker.acknowledged)


@settings(max_examples=15, deadline=None)
@given(limits=some.lists(some.integers(0, 12), min_size=1, max_size=4), steered=some.booleans())
def test_however_often_the_disk_is_full_nothing_acknowledged_is_lost(
    limits: list[int], steered: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("full") / "t.db"

    async def work() -> None:
        script = [part for at in range(12) for part in turns(4, f"r{at}_")]
        worker = Worker(path, *turns(1, "a"), *script)
        async with worker.agent:
            await worker.run("first")
            for number, pages in enumerate(limits):
                if steered:
                    worker.steer(f"steered {number}")
                worker.limit(pages)
                with _maybe_full():
                    await worker.run(f"prompt {number}")
                worker.check()
                worker.limit(None)
            await worker.run("last")
            worker.check()
            texts = [str(message.text) for message in worker.agent.messages()]
            assert [texts.count(f"steered {number}") for number in range(len(limits))] == [
                int(steered)
            ] * len(limits)
            assert faults(worker.agent.messages()) == []

    asyncio.run(work())
    # LangGraph may have stored a task's writes behind a checkpoint that did not fit.
    report = examine(path)
    assert {finding.where for finding in report.findings} <= {"table writes"}
    mend(report)
    assert examine(path).findings == []


@contextmanager
def _maybe_full() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        assert "full" in str(error)


def test_a_file_that_may_not_grow_is_told_and_the_process_goes_on_afterwards(
    tmp_path: Path,
) -> None:
    """As `ulimit -f` and some full disks have it: the system refuses the write itself."""
    script = """
        import asyncio, os, resource, sys
        from pathlib import Path
        from loopwright.errors import DatabaseError
        from tests.test_file_troubles import Worker, turns

        async def work(path):
            worker = Worker(path, *turns(1, "a"), *turns(9, "b"), *turns(2, "c"))
            async with worker.agent:
                await worker.run("one")
                worker.steer("steered")
                log = os.stat(f"{path}-wal").st_size
                largest = (log + 20_000, resource.RLIM_INFINITY)
                resource.setrlimit(resource.RLIMIT_FSIZE, largest)
                try:
                    await worker.run("two")
                except DatabaseError as error:
                    print(error)
                worker.check()
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                await worker.run("three")
                worker.check()
                print(*worker.acknowledged)

        asyncio.run(work(Path(sys.argv[1])))
    """
    said, acknowledged = output(script, tmp_path / "t.db").split("\n")
    assert f"{str(tmp_path / 't.db')!r}: disk I/O error; check the disk and its free space" in said
    assert len(acknowledged.split()) > 8
    goes_on_elsewhere(tmp_path / "t.db", acknowledged.split())


class Locked:
    """A program that holds the write lock of a file until it is told to let go."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("BEGIN EXCLUSIVE")

    def let_go(self) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()


def noticed(worker: Worker, count: int) -> threading.Event:
    """Set when a statement has waited for so many slices in vain."""
    event, slices = threading.Event(), list[bool]()
    connection = worker.database().connection
    was_left: Callable[[], bool] = connection.is_left

    def is_left() -> bool:
        slices.append(True)
        if len(slices) >= count:
            event.set()
        return was_left()

    connection.is_left = is_left
    return event


@pytest.mark.anyio
async def test_a_turn_waits_for_a_lock_and_does_not_hold_up_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "SLICE", 0.05)
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT", 600)
    worker = Worker(tmp_path / "t.db", *turns(1, "a"), *turns(2, "b"))
    async with worker.agent:
        await worker.run("one")
        locked, waits = Locked(tmp_path / "t.db"), noticed(worker, 5)
        run = asyncio.ensure_future(worker.run("two"))
        assert await asyncio.to_thread(waits.wait, 60)  # meanwhile this loop goes on
        assert not run.done()
        locked.let_go()
        await run
        worker.check()
        assert worker.agent.messages()[-1].text == "b is done"


@pytest.mark.anyio
async def test_a_lock_that_is_held_too_long_is_told_and_afterwards_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.db"
    worker = Worker(path, *turns(1, "a"), *turns(3, "b"), *turns(1, "c"))
    locked: list[Locked] = []

    async def lock_in_the_run(event: object) -> None:
        if isinstance(event, MessageEnd) and event.message.text == "" and not locked:
            locked.append(Locked(path))

    async with worker.agent:
        await worker.run("one")
        worker.steer("steered")
        monkeypatch.setattr(connecting, "SLICE", 0.05)
        monkeypatch.setattr(connecting, "BUSY_TIMEOUT", 0.2)
        worker.database().connection.execute("PRAGMA busy_timeout = 50")
        worker.agent.subscribe(lock_in_the_run)
        with pytest.raises(DatabaseError, match=r"t\.db.*locked; another program holds it"):
            await worker.run("two")
        worker.check()
        with pytest.raises(DatabaseError, match=r"t\.db.*locked"):
            worker.steer("not acknowledged")
        locked[0].let_go()
        await worker.run("three")
        worker.check()
        texts = [str(message.text) for message in worker.agent.messages()]
        assert texts.count("steered") == 1 and "not acknowledged" not in texts
    goes_on_elsewhere(path, worker.acknowledged)


@pytest.mark.anyio
async def test_a_run_that_waits_for_a_lock_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "SLICE", 0.05)
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT", 600)
    worker = Worker(tmp_path / "t.db", *turns(1, "a"), *turns(2, "b"), *turns(1, "c"))
    async with worker.agent:
        await worker.run("one")
        locked, waits = Locked(tmp_path / "t.db"), noticed(worker, 3)
        run = asyncio.ensure_future(worker.agent.prompt("two"))
        assert await asyncio.to_thread(waits.wait, 60)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await worker.agent.wait_for_idle()
        locked.let_go()
        await worker.run("three")
        worker.check()


def test_a_history_that_is_left_half_read_holds_neither_a_lock_nor_the_log(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"
    with Agent("offline", database=path, thread="mine") as agent:
        agent.run("list files")
        config: Any = {"configurable": {"thread_id": "mine"}}
        states = agent.graph.get_state_history(config)
        newest = next(states)
        with closing(sqlite3.connect(path, timeout=0)) as other:
            (busy, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert not busy
        assert agent.run("list files again").status == "completed"
        assert all(str(state.created_at) < str(newest.created_at) for state in states)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO loopwright_migrations VALUES (99)")
        connection.commit()


UNUSABLE = {
    "cut": (cut, "malformed; `loopwright doctor` tells what is damaged; restore a backup"),
    "newer": (make_newer, "schema 99 is newer than"),
}

COMMANDS = (
    ("threads", "--database"),
    ("doctor",),
    ("steer", "mine", "hello", "--database"),
    ("run", "hello", "--thread", "mine", "--database"),
)


@pytest.mark.parametrize("how", UNUSABLE)
def test_a_file_that_cannot_be_used_is_named_and_kept_byte_for_byte(
    how: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.db"
    with Agent("offline", database=path, thread="mine") as agent:
        for number in range(5):
            agent.run(f"list files {number}")
    damage, told = UNUSABLE[how]
    damage(path)
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=r"t\.db") as error:
        Agent("offline", database=path, thread="mine")
    assert told in str(error.value)
    for command in COMMANDS:
        done = loopwright(tmp_path, *command, "t.db")
        assert done.code == 2 and "t.db" in done.err and done.err.count("\n") == 1, command
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if "t.db" in file.name] == ["t.db"]


def test_commands_that_read_make_no_database(tmp_path: Path) -> None:
    for command in COMMANDS[:3]:
        loopwright(tmp_path, *command, "t.db")
    assert list(tmp_path.iterdir()) == []
    with Agent("offline", database=tmp_path / "t.db", thread="mine") as agent:
        with pytest.raises(UnknownThreadError):
            agent.messages()


def test_a_file_that_becomes_read_only_is_told_and_goes_on_when_it_may_be_written_again() -> None:
    """As another user than root, whom no rights keep from writing."""
    script = """
        import asyncio, os, sys, tempfile
        from pathlib import Path
        from loopwright.errors import DatabaseError
        from tests.test_file_troubles import Worker, turns

        async def work(path):
            worker = Worker(path, *turns(1, "a"))
            async with worker.agent:
                await worker.run("one")
            path.chmod(0o400)
            try:
                Worker(path)
            except DatabaseError as error:
                print(error)
            path.chmod(0o600)
            path.parent.chmod(0o500)
            try:
                Worker(path)
            except DatabaseError as error:
                print(error)
            path.parent.chmod(0o700)
            other = Worker(path, *turns(1, "b"))
            async with other.agent:
                await other.run("two")
                assert len(other.agent.messages()) == 8
                other.check()

        async def warm_up():  # what is imported late may be out of reach of that user
            async with Worker(None, *turns(1, "w")).agent as agent:
                await agent.prompt("go")

        asyncio.run(warm_up())
        if os.geteuid() == 0:
            os.setuid(65534)
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(work(Path(folder) / "t.db"))
    """
    file, folder = output(script).split("\n")
    assert "t.db': Permission denied; name a file in a folder that you may write" in file
    assert "t.db': " in folder and folder.endswith(
        ("make it writable or name another file", "that the folder exists and may be written")
    )
