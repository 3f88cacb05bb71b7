"""The agent's own database in its workspace: the file tools leave it alone, and nothing is lost."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright import Agent
from loopwright.signals import AbortSignal
from loopwright.state.database import Database
from loopwright.testing import Response, ScriptedModel
from loopwright.tools.files import FILE_TOOLS
from loopwright.tools.walking import Walk
from loopwright.tools.workspace import InUseError, open_file
from tests.support.processes import output

FILES = ("threads.db", "threads.db-wal", "threads.db-shm")
LOOK = """
    import sys
    from loopwright import Agent
    with Agent("offline", database=sys.argv[1]) as agent:
        print(*[message.type for message in agent.messages("t")])
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "threads.db")
    with opened.transaction() as cursor:
        cursor.execute("CREATE TABLE t (a)")
    yield opened
    opened.close()


def test_its_files_are_not_opened_while_it_is(database: Database, tmp_path: Path) -> None:
    (tmp_path / "linked.db").hardlink_to(tmp_path / "threads.db")
    for name in (*FILES, "linked.db"):
        with pytest.raises(InUseError, match=f"'{name}' belongs to the agent's own database"):
            open_file(tmp_path, name)
    database.close()
    for name in ("threads.db", "linked.db"):
        open_file(tmp_path, name)[0].close()


def test_they_are_not_listed_while_it_is(database: Database, tmp_path: Path) -> None:
    (tmp_path / "threads.txt").write_text("")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert [found.path for found in Walk(AbortSignal(), 10).files(folder)] == ["threads.txt"]
        database.close()
        walk = Walk(AbortSignal(), 10)
        assert [found.path for found in walk.files(folder)] == ["threads.db", "threads.txt"]
    finally:
        os.close(folder)


def test_what_is_said_after_a_search_is_still_stored_for_others(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    calls = [("c1", "search_text", {"pattern": "x"}), ("c2", "read_file", {"path": "threads.db"})]
    model = ScriptedModel([Response(calls=calls), "Done.", "And this."])
    with Agent(model, FILE_TOOLS, workspace=tmp_path, database=path, thread="t") as agent:
        agent.run("Look around.")
        results = [message.text for message in agent.messages() if message.type == "tool"]
        assert "not searched" not in results[0]
        assert "belongs to the agent's own database" in results[1]
        assert output(LOOK, path) == "human ai tool tool ai"
        agent.run("Go on.")
        assert output(LOOK, path) == "human ai tool tool ai human ai"
