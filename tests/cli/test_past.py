"""`loopwright history`, `fork`, `rewind`, `delete`, `prune`, `export` and `import`."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli.app import Invocation, app
from loopwright.errors import LoopwrightError
from tests.cli.running import begin, loopwright, stored
from tests.providers.offline.folders import write

WHERE = ("--database", "t.db")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a database whose thread `mine` has had two runs."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"a.txt": "one\n"})
    begin(tmp_path / "t.db", "mine", "read a.txt", "list files")
    return tmp_path


def said(*words: str, database: str = "t.db") -> str:
    """What a command prints; it is run in this process. Raises what it raises."""
    ended = CliRunner().invoke(app, [*words, "--database", database], obj=Invocation())
    if ended.exception is not None:
        raise ended.exception
    return ended.stdout


def test_the_history_is_listed_and_what_it_names_can_be_gone_back_to(home: Path) -> None:
    lines = said("history", "mine").splitlines()
    assert lines[0].endswith("8 messages  done")
    assert "tools, then tool_batch" in "\n".join(lines)
    assert lines[-1] == "... and earlier ones (--limit)"
    whole = said("history", "mine", "--limit", "99").splitlines()
    assert len(whole) > 20 and whole[:20] == lines[:20]
    moment = next(line.split()[0] for line in whole if "5 messages" in line)
    shown = said("show", "mine", "--at", moment[:30])
    assert "[5] human" in shown and "[6]" not in shown
    assert said("fork", "mine", "--at", moment, "--name", "other") == "other\n"
    assert stored(home / "t.db", "other") == stored(home / "t.db", "mine")[:5]


def test_a_thread_is_rewound_pruned_and_deleted(home: Path) -> None:
    assert said("rewind", "mine", "--at", "4") == "mine goes on behind message 4\n"
    assert len(stored(home / "t.db", "mine")) == 4
    assert said("prune", "mine", "--keep", "2") == "mine: 2 moments left\n"
    assert said("delete", "mine", "--reclaim") == "deleted mine\n"
    assert said("threads").startswith("no threads")


def test_a_thread_is_exported_and_imported(home: Path) -> None:
    assert said("export", "mine", "mine.jsonl") == "mine is in mine.jsonl\n"
    text = loopwright(home, "export", "mine", *WHERE).out
    assert text.splitlines()[1:] == (home / "mine.jsonl").read_text().splitlines()[1:]
    assert said("import", "mine.jsonl", database="u.db") == "mine  8 messages\n"
    assert stored(home / "u.db", "mine") == stored(home / "t.db", "mine")
    (home / "torn.jsonl").write_text("".join(text.splitlines(keepends=True)[:4])[:-9])
    torn = said("import", "torn.jsonl", "--name", "torn").splitlines()
    assert torn == [
        "torn  1 messages",
        "the end of the file was missing; what was there is stored",
    ]


def test_what_cannot_be_done_is_one_line(home: Path) -> None:
    for words, reason in (
        (("history", "none"), "unknown thread 'none'"),
        (("delete", "none"), "unknown thread 'none'"),
        (("rewind", "mine", "--at", "99"), "thread 'mine' has no moment 99"),
        (("fork", "mine", "--name", "mine"), "thread 'mine' exists already"),
        (("import", "a.txt"), "cannot use line 1 of 'a.txt'"),
        (("export", "mine", "none/t.jsonl"), "cannot use 'none/t.jsonl': No such file"),
    ):
        with pytest.raises(LoopwrightError, match=re.escape(reason)):
            said(*words)
    ended = loopwright(home, "history", "mine", "--database", "none.db")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "none.db': there is no such file" in ended.err and not (home / "none.db").exists()


@pytest.mark.parametrize("file", ["none.jsonl", "a.txt"])
def test_importing_what_is_no_thread_makes_no_database(home: Path, file: str) -> None:
    with pytest.raises(LoopwrightError, match=file):
        said("import", file, database="new.db")
    assert not (home / "new.db").exists()
