"""One SQLite file: how it is opened, locked, closed and refused, and what a fork may do with it."""

import asyncio
import os
import sqlite3
import stat
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from loopwright.errors import DatabaseError
from loopwright.state.database import Database
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


def test_a_lock_of_another_program_is_named_with_a_way_out(tmp_path: Path) -> None:
    database = Database(tmp_path / "threads.db")
    database.connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="try again when it is done"):
        with database.transaction() as cursor:
            cursor.execute("CREATE TABLE t (a)")
    other.execute("COMMIT")
    other.close()
    with database.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    database.close()


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
