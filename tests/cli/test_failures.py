"""What a user can get wrong is one clear line on stderr and exit code 2, and nothing is lost."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.running import begin, loopwright, stored
from tests.providers.offline.folders import write


def refused(home: Path, *words: str | Path, **env: str) -> str:
    """The one line on stderr of a command that is refused."""
    done = loopwright(home, *words, **env)
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("loopwright: ") and done.err.count("\n") == 1, done.err
    assert "Traceback" not in done.err
    return done.err


def test_a_missing_key_names_its_variable_and_leaves_the_thread_alone(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    begin(database, "mine", "hello")
    before = stored(database, "mine")
    where = ("--database", "t.db", "--thread", "mine")
    line = refused(tmp_path, "run", "hi", "--model", "openai/gpt-5", *where)
    assert "OPENAI_API_KEY" in line
    assert stored(database, "mine") == before


def test_an_unknown_model(tmp_path: Path) -> None:
    assert "unknown model 'nonsense'" in refused(tmp_path, "run", "hi", "--model", "nonsense")


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    # Root may write everywhere but into the kernel's own folders.
    folder = Path("/proc/self") if os.geteuid() == 0 else tmp_path / "locked"
    line = refused(tmp_path, "demo", "--database", folder / "t.db")
    assert f"cannot use database '{folder}/t.db'" in line
    assert "name a file in a folder that you may write" in line


def test_a_database_in_a_place_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"file": "one\n"})
    line = refused(tmp_path, "demo", "--database", tmp_path / "file" / "t.db")
    assert "cannot use database" in line and "file/t.db" in line


@pytest.mark.parametrize("command", [("demo",), ("threads",), ("show", "x")])
def test_a_file_that_is_no_database_is_left_as_it_is(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    text = "my notes\n" * 100
    write(tmp_path, {"notes.txt": text})
    line = refused(tmp_path, *command, "--database", "notes.txt")
    assert "not a database" in line
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_unknown_thread(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "hello")
    assert "unknown thread 'nope'" in refused(tmp_path, "show", "nope", "--database", "t.db")


def test_looking_does_not_create_a_database(tmp_path: Path) -> None:
    assert "new.db': there is no such file" in refused(
        tmp_path, "show", "nope", "--database", "new.db"
    )
    assert "no threads" in loopwright(tmp_path, "threads", "--database", "new.db").out
    assert not (tmp_path / "new.db").exists()


def test_a_workspace_that_is_no_folder(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "one\n"})
    assert "is not a folder" in refused(tmp_path, "demo", "a.txt")
    assert "does not exist" in refused(tmp_path, "run", "hi", "--workspace", "gone")


@pytest.mark.parametrize(
    ("words", "said"),
    [(("run", " \n"), "prompt is blank"), (("run", "hi", "--thread", " "), "thread is blank")],
)
def test_blank_words(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refused(tmp_path, *words)


def test_a_setting_that_makes_no_sense(tmp_path: Path) -> None:
    line = refused(tmp_path, "demo", LOOPWRIGHT_TRACING="maybe")
    assert "LOOPWRIGHT_TRACING" in line


def test_wrong_use_says_how_to_get_help(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "bogus")
    assert done.code == 2
    assert "No such command 'bogus'" in done.err and "--help" in done.err


def test_debug_shows_where_it_came_from(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "--debug", "show", "nope")
    assert done.code == 2
    assert "Traceback" in done.err and "DatabaseError" in done.err


def test_a_bug_is_one_line_too(tmp_path: Path) -> None:
    script = (
        "import loopwright.cli.graph as g, sys\n"
        "def broken(**_): raise RuntimeError('broken\\x1b[31m inside')\n"
        "g.Agent = broken\n"
        "from loopwright.cli import main\n"
        "sys.argv = ['loopwright', 'graph']\nmain()\n"
    )
    command = (sys.executable, "-c", script)
    done = loopwright(tmp_path, command=command)
    assert (done.code, done.out) == (1, "")
    assert "unexpected RuntimeError: broken inside" in done.err and "--debug" in done.err
    assert done.err.count("\n") == 1
