"""Online backups: consistent while others write, whole or not there, never in someone's way."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from loopwright import Agent
from loopwright.errors import ConfigurationError, DatabaseError
from loopwright.state.backup import backup
from loopwright.testing import Response, ScriptedModel
from tests.support.processes import start

WRITER = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE pairs (a, b)")
    connection.executemany("INSERT INTO pairs VALUES (?, zeroblob(3000))", [(-1,)] * 3000)
    number = 0
    while True:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO pairs VALUES (?, 1)", (number,))
        connection.execute("INSERT INTO pairs VALUES (?, 2)", (number,))
        connection.execute("COMMIT")
        if number == 100:
            print("going on", flush=True)
        number += 1
"""


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_copy_made_while_another_process_writes_is_of_one_moment(tmp_path: Path) -> None:
    source, target = tmp_path / "t.db", tmp_path / "copy.db"
    told: list[tuple[int, int]] = []
    with start(WRITER, source) as process:
        assert process.stdout is not None and process.stdout.readline() == "going on\n"
        (before,) = rows(source, "SELECT max(a) FROM pairs")
        size = backup(source, target, progress=lambda done, total: told.append((done, total)))
        (after,) = rows(source, "SELECT max(a) FROM pairs")
        process.kill()
        process.communicate()
    halves = rows(target, "SELECT count(*) FROM pairs WHERE a >= 0 GROUP BY a HAVING count(*) != 2")
    (newest,) = rows(target, "SELECT max(a) FROM pairs")
    assert halves == []
    assert before <= newest < after
    assert len(told) > 2 and told[-1][0] == told[-1][1]
    assert size == target.stat().st_size
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == ["copy.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_the_copy_of_a_thread_that_is_run_goes_on_and_is_not_busy(tmp_path: Path) -> None:
    source, target = tmp_path / "t.db", tmp_path / "copy.db"
    leases = "SELECT count(*) FROM loopwright_leases"

    def copy_now() -> str:
        """Copies the database in the middle of a run."""
        backup(source, target)
        return f"{rows(source, leases)} {rows(target, leases)}"

    model = ScriptedModel([Response(calls=[("c1", "copy_now", {})]), "done"])
    with Agent(model, [copy_now], database=source, thread="mine") as agent:
        agent.run("go")
        (held,) = [m.text for m in agent.messages() if isinstance(m, ToolMessage)]
    assert held == "[(1,)] [(0,)]"
    with Agent(ScriptedModel(["I am the copy."]), database=target, thread="mine") as agent:
        assert [message.text for message in agent.messages()][:1] == ["go"]
        assert agent.run("and you?").status == "completed"


def test_a_target_that_exists_is_kept_unless_it_shall_be_overwritten(tmp_path: Path) -> None:
    with Agent(database=tmp_path / "t.db", thread="mine") as agent:
        agent.steer("hello")
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(ConfigurationError, match=r"copy\.db.*exists.*--force"):
        backup(tmp_path / "t.db", target)
    assert target.read_text() == "precious"
    backup(tmp_path / "t.db", target, overwrite=True)
    assert rows(target, "SELECT count(*) FROM loopwright_log") == [(1,)]


def test_a_target_that_is_open_or_the_source_itself_is_refused(tmp_path: Path) -> None:
    for name in ("t.db", "other.db"):
        with Agent(database=tmp_path / name):
            pass
    with pytest.raises(ConfigurationError, match="is the source"):
        backup(tmp_path / "t.db", tmp_path / "t.db", overwrite=True)
    with Agent(database=tmp_path / "other.db") as agent:
        agent.steer("hello")
        with pytest.raises(DatabaseError, match=r"other\.db.*is open"):
            backup(tmp_path / "t.db", tmp_path / "other.db", overwrite=True)
    with pytest.raises(DatabaseError, match="no such folder"):
        backup(tmp_path / "t.db", tmp_path / "nowhere" / "copy.db")


def test_without_a_source_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"t\.db.*no such file"):
        backup(tmp_path / "t.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_source_is_told_and_no_copy_is_left(tmp_path: Path) -> None:
    source = tmp_path / "t.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 50)
        connection.commit()
    whole = source.read_bytes()
    source.write_bytes(whole[:8192] + os.urandom(4096) + whole[12288:])
    with pytest.raises(DatabaseError, match="doctor"):
        backup(source, tmp_path / "copy.db")
    source.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatabaseError, match=r"t\.db.*malformed"):
        backup(source, tmp_path / "copy.db")
    assert source.read_bytes() == whole[: len(whole) // 2]
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


def test_a_copy_that_does_not_fit_is_told_and_removed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 500)
        connection.commit()
    script = """
        import resource, sys
        from loopwright.errors import DatabaseError
        from loopwright.state.backup import backup
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            backup(sys.argv[1], sys.argv[2])
        except DatabaseError as error:
            print(error)
    """
    with start(script, tmp_path / "t.db", tmp_path / "copy.db") as process:
        said, err = process.communicate(timeout=60)
    assert err == ""
    assert f"{str(tmp_path / 'copy.db')!r}: disk I/O error; check the disk" in said
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]
