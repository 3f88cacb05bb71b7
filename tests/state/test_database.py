"""One SQLite file: how it is opened, locked, closed and refused, and what a fork may do with it."""

import asyncio
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

from loopwright.errors import DatabaseError
from loopwright.state import connecting
from loopwright.state import database as database_module
from loopwright.state.database import Database
from tests.support.databases import held
from tests.support.processes import output


def test_a_new_file_and_its_folder_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    database = Database(tmp_path / "new" / "threads.db")
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()]
    assert modes == [0o600] * len(modes)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    database.close()


def test_an_existing_file_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    path.touch(0o644)
    path.chmod(0o644)
    database = Database(path)
    assert database.connection is database.connection
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    database.close()


def test_commits_are_written_ahead_and_survive_a_kill(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    with database.transaction() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert cursor.execute("PRAGMA synchronous").fetchone() == (1,)
    database.close()


def test_a_transaction_is_committed_whole_or_not_at_all(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
        cursor.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(KeyError), database.transaction() as cursor:
        cursor.execute("INSERT INTO t VALUES (2)")
        raise KeyError
    with database.transaction() as cursor:
        assert cursor.execute("SELECT a FROM t").fetchall() == [(1,)]
    database.close()


@pytest.mark.anyio
async def test_work_hops_to_one_thread(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    threads = await asyncio.gather(*(database.hop(threading.get_ident) for _ in range(5)))
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()
    database.close()


@pytest.mark.anyio
async def test_a_cancelled_caller_does_not_cut_work_short(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    begun, go_on = threading.Event(), threading.Event()
    done: list[bool] = []

    def work() -> None:
        begun.set()
        done.append(go_on.wait(30))

    caller = asyncio.ensure_future(database.hop(work))
    await asyncio.to_thread(begun.wait, 30)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    await asyncio.to_thread(database.close)
    assert done == [True]


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    assert database.connection
    database.close()
    database.close()
    with pytest.raises(DatabaseError, match=r"threads\.db.*was closed"), database.transaction():
        pass


def test_a_database_in_memory_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database()
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    database.close()
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just some notes, and enough of them to fill a header " * 4)
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=r"notes\.txt.*not a database.*name a Loopwright") as e:
        assert Database(path).connection
    assert e.value.path == str(path)
    assert path.read_bytes() == before


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="Is a directory; name a file"):
        assert Database(tmp_path).connection


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match=r"file/threads\.db"):
        assert Database(tmp_path / "file" / "threads.db").connection


def test_a_file_that_may_not_be_written_is_refused() -> None:
    script = """
        import os, sys
        from loopwright.errors import DatabaseError
        from loopwright.state.database import Database
        if os.geteuid() == 0:  # root may write everything
            os.setuid(65534)
        try:
            Database(sys.argv[1]).connection
        except DatabaseError as error:
            print(error)
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "threads.db"
        path.touch()
        path.chmod(0o444)
        path.parent.chmod(0o755)
        said = output(script, path)
    assert f"{str(path)!r}: Permission denied; name a file in a folder that you may write" in said


def test_a_lock_of_another_program_is_named_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT", 0.1)
    monkeypatch.setattr(connecting, "SLICE", 0.05)
    database = Database(tmp_path / "threads.db")
    assert database.connection
    other = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseError, match=r"threads\.db.*locked.*try again when it is done"):
        with database.transaction() as cursor:
            cursor.execute("CREATE TABLE t (a)")
    other.execute("COMMIT")
    other.close()
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    database.close()


def test_a_statement_waits_for_a_lock_longer_than_sqlite_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "SLICE", 0.01)
    database = Database(tmp_path / "threads.db")
    assert database.connection
    other = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    waited: list[bool] = []

    def left() -> bool:  # asked after each slice that was waited in vain
        waited.append(True)
        if len(waited) == 5:
            other.execute("COMMIT")
        return False

    monkeypatch.setattr(database.connection, "is_left", left)
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    assert len(waited) == 5
    database.close()
    other.close()


@pytest.mark.anyio
async def test_what_a_cancelled_caller_wanted_does_not_wait_for_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT", 600)
    monkeypatch.setattr(connecting, "SLICE", 0.01)
    database = Database(tmp_path / "threads.db")
    assert database.connection
    other = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    begun, ended = threading.Event(), list[BaseException]()

    def work(name: str) -> None:
        begun.set()
        try:
            with database.transaction() as cursor:
                cursor.execute(f"CREATE TABLE {name} (a)")
        except DatabaseError as error:
            ended.append(error)
            raise

    caller = asyncio.ensure_future(database.hop(work, "t"))
    await asyncio.to_thread(begun.wait, 30)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await database.settled()
    assert len(ended) == 1
    released: list[str] = []
    database.submit(lambda: released.append("not waited for again" if _fails(database) else ""))
    await database.settled()
    assert released == ["not waited for again"]
    other.execute("COMMIT")
    await database.hop(work, "t")
    await asyncio.to_thread(database.close)
    other.close()


def _fails(database: Database) -> bool:
    try:
        with database.transaction() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
    except DatabaseError:
        return True
    return False


@pytest.mark.parametrize("way", [Path.unlink, lambda path: path.rename(f"{path}.old")])
def test_a_file_that_was_taken_away_is_written_no_more(
    way: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "threads.db"
    database = Database(path)
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    way(path)
    for _ in range(2):
        with pytest.raises(DatabaseError, match=r"moved or deleted.*put it back, or open"):
            with database.transaction() as cursor:
                cursor.execute("INSERT INTO t VALUES (1)")
    assert not path.exists()
    database.close()


def test_a_file_that_was_put_back_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    database = Database(path)
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(DatabaseError, match="moved"), database.transaction():
        pass
    (tmp_path / "elsewhere").rename(path)
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
    database.close()


def test_a_file_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"new.db.*no such file; name a database that exists"):
        assert Database(tmp_path / "folder" / "new.db", create=False).connection
    assert list(tmp_path.iterdir()) == []


def test_a_file_cut_short_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    database = Database(path)
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
        cursor.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 100)
    database.close()
    whole = path.read_bytes()
    for size in (len(whole) // 2, 5000, 700, 90):
        path.write_bytes(whole[:size])
        with pytest.raises(DatabaseError, match=r"threads\.db.*(malformed|not a database)"):
            assert Database(path).connection
        assert path.read_bytes() == whole[:size]
        assert [file.name for file in tmp_path.iterdir()] == ["threads.db"]


def test_the_write_ahead_log_does_not_keep_its_greatest_size(tmp_path: Path) -> None:
    path, log = tmp_path / "threads.db", tmp_path / "threads.db-wal"
    database = Database(path)
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
        cursor.executemany("INSERT INTO t VALUES (zeroblob(9000))", [()] * 3000)
    assert log.stat().st_size > 2 * connecting.LOG_LIMIT
    for _ in range(2):  # the first checkpoints, the second begins the log anew
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO t VALUES (1)")
    assert log.stat().st_size <= connecting.LOG_LIMIT
    database.close()
    assert not log.exists()


def test_a_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    script = """
        import os, sys
        from loopwright.state.database import Database
        database = Database(sys.argv[1])
        with database.transaction() as cursor:
            cursor.execute("CREATE TABLE t (a)")
        mine = database.connection
        child = os.fork()
        if child == 0:
            assert database.connection is not mine
            with database.transaction() as cursor:
                cursor.execute("INSERT INTO t VALUES ('child')")
            database.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert database.connection is mine
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO t VALUES ('parent')")
            print(*(row[0] for row in cursor.execute("SELECT a FROM t")))
        database.close()
    """
    assert output(script, tmp_path / "threads.db") == "child parent"


def test_a_closed_database_stays_closed_in_a_forked_child(tmp_path: Path) -> None:
    script = """
        import os, sys
        from loopwright.errors import DatabaseError
        from loopwright.state.database import Database
        database = Database(sys.argv[1])
        database.connection, database.close()
        child = os.fork()
        if child == 0:
            try:
                database.connection
            except DatabaseError:
                os._exit(0)
            os._exit(1)
        print(os.waitpid(child, 0)[1])
    """
    assert output(script, tmp_path / "threads.db") == "0"


def test_what_is_kept_in_memory_is_a_forked_child_s_own_copy() -> None:
    script = """
        import os
        from loopwright.state.database import Database
        database = Database()
        with database.transaction() as cursor:
            cursor.execute("CREATE TABLE t (a)")
        child = os.fork()
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO t VALUES (?)", ["parent" if child else "child"])
            kept = cursor.execute("SELECT a FROM t").fetchall()
        if child == 0:
            os._exit(kept != [("child",)])
        print(os.waitpid(child, 0)[1], kept)
        database.close()
    """
    assert output(script) == "0 [('parent',)]"


def test_a_relative_path_is_meant_from_where_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database("threads.db")
    assert database.path == os.path.join(str(tmp_path), "threads.db")


def test_opening_it_again_keeps_the_locks_of_what_this_process_has_open(tmp_path: Path) -> None:
    """A file that is closed takes all locks of its process along; without them another process that
    closes it removes the log that this one still writes to, and what is written then is lost.
    """
    path = tmp_path / "threads.db"
    first, second = Database(path), Database(path)
    with first.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    assert second.connection
    count = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1])
        print(connection.execute("SELECT count(*) FROM t").fetchone()[0])
        connection.close()
    """
    assert output(count, path) == "0"
    with first.transaction() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
    assert output(count, path) == "1"
    first.close()
    second.close()


@pytest.mark.anyio
async def test_short_work_is_done_at_once_unless_it_would_have_to_wait(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")

    def where() -> str:
        with database.transaction():
            return threading.current_thread().name

    here = threading.current_thread().name
    assert await database.here(where) != here  # opening a file takes its time
    assert await database.here(where) == here
    with held(database):
        work = asyncio.ensure_future(database.here(where))
        await asyncio.sleep(0)
        assert not work.done()
        left = asyncio.ensure_future(database.hop(where))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        behind = asyncio.ensure_future(database.here(where))  # it does not overtake what was left
        await asyncio.sleep(0)
    assert await work != here and await behind != here
    await database.settled()
    assert await database.here(where) == here
    database.close()


@pytest.mark.anyio
async def test_short_work_waits_for_the_lock_of_another_program_in_a_hop(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    other = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    tries: list[str] = []

    def work() -> None:
        tries.append(threading.current_thread().name)
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO t VALUES (1)")

    waiting = asyncio.ensure_future(database.here(work))
    await asyncio.sleep(0)
    assert tries[0] == threading.current_thread().name and not waiting.done()
    other.execute("COMMIT")
    await waiting
    assert len(tries) == 2 and tries[1] != tries[0]
    with pytest.raises(KeyError):
        await database.here(dict[str, int]().__getitem__, "what work raises is told")
    assert database.connection.execute("PRAGMA busy_timeout").fetchone() == (1000,)
    assert database.connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
    database.close()
    other.close()


@pytest.mark.anyio
async def test_a_server_that_watches_for_blocking_calls_sees_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "blockbuster", ModuleType("blockbuster"))
    database = Database(tmp_path / "threads.db")
    assert database.connection
    here = threading.current_thread().name
    assert await database.here(lambda: threading.current_thread().name) != here
    database.close()


@pytest.mark.anyio
async def test_the_log_of_an_event_loop_is_copied_into_the_file_by_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "COPY_EVERY", 3)
    database = Database(tmp_path / "threads.db")
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    before = (tmp_path / "threads.db").stat().st_size

    def work() -> None:
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO t VALUES (zeroblob(9000))")

    for _ in range(3):
        await database.here(work)
    await database.settled()
    assert (tmp_path / "threads.db").stat().st_size > before
    database.close()
