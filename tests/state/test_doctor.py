"""What the doctor finds in files that are whole, and in files that were damaged in one way each."""

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from loopwright import Agent
from loopwright.errors import DatabaseError
from loopwright.state.doctor import Report, examine
from loopwright.state.mending import mend
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.support.processes import start
from tests.support.savers import KINDS, Opener, folding, ours, stock


def change(path: Path, *statements: str) -> None:
    """Damage a database."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def told(path: Path) -> list[str]:
    """What is found, where and what."""
    return [f"{finding.where}: {finding.what}" for finding in examine(path).findings]


def look(at: int) -> str:
    """Look at a number."""
    return f"saw {at}"


def converse(path: Path, thread: str = "mine") -> None:
    """A thread of our own with a batch of two calls in it."""
    script: list[Any] = [
        Response(calls=[("c1", "look", {"at": 1}), ("c2", "look", {"at": 2})]),
        "done",
    ]
    with Agent(ScriptedModel(script), [look], database=path, thread=thread) as agent:
        agent.run("go")


def put_in_place_of_the_ledger(path: Path, *messages: object, thread: str = "mine") -> None:
    """Store a transcript as an editor would who knows no rules."""
    with Agent("offline", database=path, thread=thread) as agent:
        agent.graph.rewrite(thread, list(messages))  # type: ignore[arg-type]


UNPAIRED = (
    HumanMessage("go", id="h"),
    AIMessage("", id="a", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1"}]),
    AIMessage("done", id="b"),
    ToolMessage("nobody asked", tool_call_id="c9", id="t"),
)


@pytest.mark.parametrize("opened", [ours, folding, stock])
def test_nothing_is_wrong_with_a_file_that_any_graph_has_used(
    opened: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "t.db"
    path.touch(0o600)
    with opened(path) as saver:
        for kind, (make, work) in KINDS.items():
            work(make(saver), kind)
        if opened is not stock:
            saver.copy_thread("fan", "copied")
            saver.prune(["deltas", "chat"])
            saver.copy_thread("chat", "again")
            saver.delete_thread("chat")
            saver.delete_thread("asking")
    if opened is not stock:
        converse(path)
    report = examine(path)
    assert (report.findings, report.notes) == ([], [])
    assert report.threads - report.others == (opened is not stock)
    assert report.schema == (0 if opened is stock else report.newest)


def test_it_changes_nothing_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with pytest.raises(DatabaseError, match=r"t\.db.*no such file"):
        examine(path)
    assert list(tmp_path.iterdir()) == []
    with stock(path) as saver:
        KINDS["chat"][1](KINDS["chat"][0](saver))
    before = path.read_bytes()
    examine(path)
    assert path.read_bytes() == before


def test_what_is_no_database_or_newer_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("only some notes, but enough of them for a header" * 20)
    with pytest.raises(DatabaseError, match="not a database"):
        examine(tmp_path / "notes.txt")
    converse(tmp_path / "t.db")
    change(tmp_path / "t.db", "INSERT INTO loopwright_migrations VALUES (99)")
    with pytest.raises(DatabaseError, match="schema 99 is newer"):
        examine(tmp_path / "t.db")


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'loopwright_rows'"
        (page,) = connection.execute(query).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))
    found = told(path)
    assert found[0].startswith("file: damaged")
    assert "restore a backup" in examine(path, quick=True).findings[0].remedy


def test_a_state_that_cannot_be_loaded_is_told_and_the_other_threads_are_still_looked_at(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"
    for thread in ("one", "two", "three"):
        converse(path, thread)
    put_in_place_of_the_ledger(path, *UNPAIRED, thread="three")
    change(
        path,
        "UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'one' AND checkpoint_id ="
        " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'one')",
    )
    found = told(path)
    assert [line.split(":")[0] for line in found] == [
        "thread one",
        "thread three",
        "table checkpoints",
    ]
    assert "cannot be loaded" in found[0]


def test_rows_that_are_missing_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    converse(path, "other")
    change(
        path,
        "DELETE FROM loopwright_rows WHERE position = 1 AND branch IN"
        " (SELECT branch FROM loopwright_branches WHERE thread = 'mine' AND channel = 'messages')",
    )
    found = told(path)
    assert len(found) == 2
    assert "thread mine: its newest state cannot be loaded: rows of list" in found[0]
    assert "thread mine: checkpoints need what is not stored: rows of list" in found[1]


def repaired(path: Path) -> tuple[Report, list[str]]:
    """Mend a file; what was wrong, and what was done. Nothing is wrong any more."""
    before = examine(path)
    done = mend(before)
    after = examine(path)
    assert [finding for finding in after.findings if finding.mend] == []
    return before, done


ORPHANS: dict[str, tuple[str, ...]] = {
    "loopwright_rows": (
        "INSERT INTO loopwright_rows VALUES (999, 0, NULL, x'00')",
        "INSERT INTO loopwright_rows VALUES (999, 1, NULL, x'00')",
    ),
    "loopwright_branches": (
        "INSERT INTO loopwright_branches VALUES (998, 'gone', '', 'messages', NULL, 0)",
    ),
    "loopwright_values": (
        "INSERT INTO loopwright_values VALUES (997, 'mine', x'00', 'msgpack', x'00')",
    ),
    "writes": ("INSERT INTO writes VALUES ('gone', '', '1', 'task', '', 0, 'c', 'null', x'')",),
}


@pytest.mark.parametrize("table", ORPHANS)
def test_what_belongs_to_nothing_is_told_by_table_and_deleted(table: str, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    change(path, *ORPHANS[table])
    count = len(ORPHANS[table])
    before, done = repaired(path)
    assert [finding.where for finding in before.findings] == [f"table {table}"]
    assert before.findings[0].what == f"{count} rows belong to no checkpoint"
    assert done == [f"table {table}: deleted {count} rows that belong to no checkpoint"]
    assert told(path) == []
    with Agent("offline", database=path, thread="mine") as agent:
        assert len(agent.messages()) == 5


def test_rows_behind_a_list_s_end_are_deleted_and_the_list_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    change(
        path,
        "INSERT INTO loopwright_rows SELECT branch, 5, NULL, x'00' FROM loopwright_branches"
        " WHERE channel = 'messages'",
    )
    assert told(path) == ["table loopwright_rows: 1 rows belong to no checkpoint"]
    repaired(path)
    with Agent(ScriptedModel(["and on"]), database=path, thread="mine") as agent:
        assert agent.run("go on").status == "completed"
        assert [message.text for message in agent.messages()][-2:] == ["go on", "and on"]
    assert told(path) == []


def test_writes_that_came_before_their_checkpoint_are_let_be(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    change(path, "INSERT INTO writes VALUES ('mine', '', 'f', 'task', '', 0, 'c', 'null', x'')")
    assert told(path) == []


def test_an_unpaired_transcript_is_told_and_mended_as_a_new_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    put_in_place_of_the_ledger(path, *UNPAIRED)
    before, done = repaired(path)
    assert [finding.where for finding in before.findings] == ["thread mine"]
    assert before.findings[0].what == "unanswered call c1 at message 3, and 1 more faults"
    assert done == ["thread mine: transcript mended (1 synthesized, 1 dropped orphans)"]
    with Agent(ScriptedModel(["on"]), database=path, thread="mine") as agent:
        mended = agent.messages()
        assert faults(mended) == []
        assert [m.id for m in mended if not isinstance(m, ToolMessage)] == ["h", "a", "b"]
        config: Any = {"configurable": {"thread_id": "mine"}}
        states = agent.graph.get_state_history(config)
        stored: list[Any] = [state.values.get("messages") for state in states]
        assert [message.id for message in stored[1]] == ["h", "a", "b", "t"]
        assert agent.run("go on").status == "completed"
        assert agent.messages()[: len(mended)] == mended
    assert told(path) == []


RUNNING = """
    import os, sys, threading
    from loopwright import Agent
    from loopwright.testing import Response, ScriptedModel

    def stuck() -> str:
        "Never ends."
        os.write(1, b"in the tool\\n")
        threading.Event().wait()
        return ""

    script = [Response(calls=[("c1", "stuck", {})])]
    with Agent(ScriptedModel(script), [stuck], database=sys.argv[1], thread="mine") as agent:
        agent.run("go")
"""


def while_running(path: Path, then: Callable[[], None]) -> None:
    """Do something while another process is in a tool of thread `mine`, which is then killed."""
    with start(RUNNING, path) as process:
        assert process.stdout is not None and process.stdout.readline() == "in the tool\n"
        try:
            then()
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()


def test_a_thread_that_is_run_is_left_alone_and_one_that_died_is_told_as_such(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"

    def meanwhile() -> None:
        change(path, *ORPHANS["loopwright_values"], *ORPHANS["loopwright_rows"])
        report = examine(path)
        assert [finding.where for finding in report.findings] == ["table loopwright_rows"]
        assert report.notes == [("thread mine", "is being run")]
        assert mend(report) == [
            "table loopwright_rows: deleted 2 rows that belong to no checkpoint"
        ]

    while_running(path, meanwhile)
    before, done = repaired(path)
    assert ("thread mine", "its last run did not end: the next one mends it") in before.notes
    wheres = [finding.where for finding in before.findings]
    assert wheres == ["thread mine", "table loopwright_values"]
    assert "lease of run" in before.findings[0].what and "is dead" in before.findings[0].what
    assert len(done) == 2 and done[0].startswith("thread mine: removed the lease of run")
    assert examine(path).findings == []
    with Agent(ScriptedModel(["on"]), database=path, thread="mine") as agent:
        assert agent.run("go on").status == "completed"


def test_a_thread_whose_run_began_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    put_in_place_of_the_ledger(path, *UNPAIRED)
    report = examine(path)
    assert [finding.mend for finding in report.findings] == ["transcript"]
    done: list[str] = []
    while_running(path, lambda: done.extend(mend(report)))
    assert done == ["thread mine: is being run now, left alone"]


def test_rights_of_others_are_told_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    converse(path)
    path.chmod(0o644)
    before, done = repaired(path)
    assert before.findings[0].what == "others than its owner may use it (rights 644)"
    assert done == ["file: only its owner may use it now"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_large_write_ahead_log_is_told_and_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopwright.state.doctor.LARGE_LOG", 10_000)
    path = tmp_path / "t.db"
    converse(path)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM checkpoints").fetchone()
        converse(path, "other")
        report = examine(path)
        assert "its write-ahead log has" in report.findings[0].what
        monkeypatch.setattr("loopwright.state.connecting.BUSY_TIMEOUT", 0.1)
        assert mend(report) == [
            "file: its write-ahead log is in use by another program, left alone"
        ]
        reader.execute("ROLLBACK")
        assert mend(examine(path)) == ["file: emptied its write-ahead log"]
        assert examine(path).log_bytes == 0


def test_messages_that_wait_for_a_thread_that_has_not_begun_are_never_deleted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"
    with Agent("offline", database=path, thread="new") as agent:
        agent.steer("hello")
    report = examine(path)
    assert report.findings == []
    assert report.notes == [("thread new", "has messages waiting for its first run")]
    change(path, "INSERT INTO loopwright_log (thread, kind, body) VALUES ('new', 'steering', '{')")
    assert told(path) == ["table loopwright_log: entry 2 of thread new is damaged"]
