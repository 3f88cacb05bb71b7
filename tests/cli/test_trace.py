"""`loopwright trace`, `loopwright replay` and `run --trace`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright import Agent
from loopwright.cli.app import Invocation, app
from loopwright.errors import TraceFileError, UnknownThreadError
from loopwright.settings import Limits, Settings
from loopwright.testing import Response, ScriptedModel
from tests.cli.running import loopwright
from tests.providers.offline.folders import write

USAGE = {"input_tokens": 30, "output_tokens": 4}


def look(at: str) -> str:
    """Look."""
    return f"seen {at}\nand more"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace and a database of two runs on thread `mine`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_DATABASE", str(tmp_path / "t.db"))
    script = [Response(calls=[("c1", "look", {"at": "a"})], usage=USAGE)] * 2 + ["done"]
    with Agent(
        ScriptedModel(script),
        [look],
        database="t.db",
        thread="mine",
        trace="runs.jsonl",
        settings=Settings(limits=Limits(turns=2)),
    ) as agent:
        agent.run("hi")
        agent.run("go on")
    return tmp_path


def said(*words: str, code: int = 0) -> list[str]:
    """The lines that a command prints; it is run in this process. Raises what it raises."""
    ended = CliRunner().invoke(app, words, obj=Invocation())
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    assert ended.exit_code == code, ended.stdout
    return ended.stdout.splitlines()


def test_a_trace_file_is_shown_as_a_tree(home: Path) -> None:
    first, *rest = said("trace", "runs.jsonl")
    assert "of thread mine" in first and "limit (max_turns)" in first and "2 turns" in first
    assert "68 tokens (60 in, 8 out)" in first
    assert rest[0] == "|- turn 1"
    assert rest[1] == "|  |- message human  hi"
    assert rest[2].startswith("|  |- model scripted  tool_use  0.")
    assert rest[2].endswith("s  34 tokens (30 in, 4 out)")
    assert rest[3].startswith('|  `- tool look {"at": "a"}  ok  0.')
    assert rest[3].endswith("seen a and more")
    assert rest[4] == "`- turn 2"
    second = next(line for line in rest if line.startswith("run "))
    assert "completed (answered)" in second


def test_a_thread_is_shown_from_its_trace_or_else_from_the_database(home: Path) -> None:
    assert said("trace", "mine", "--file", "runs.jsonl") == said("trace", "runs.jsonl")
    stored = said("trace", "mine")
    assert [line.split("  ")[2:4] for line in stored if line.startswith("run ")] == [
        ["limit (max_turns)", "2 turns"],
        ["completed (answered)", "1 turns"],
    ]
    assert '|  `- tool look {"at": "a"}  ok  seen a and more' in stored
    assert "68 tokens (60 in, 8 out)" in stored[0]


def test_the_environment_s_trace_is_looked_into(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_TRACE", str(home / "runs.jsonl"))
    assert said("trace", "mine") == said("trace", "runs.jsonl")


def test_a_thread_that_is_nowhere_is_refused(home: Path) -> None:
    for words in (("nobody",), ("nobody", "--file", "runs.jsonl")):
        with pytest.raises(UnknownThreadError):
            said("trace", *words)
    with pytest.raises(TraceFileError):
        said("trace", "mine", "--file", "missing.jsonl")


def test_runs_that_are_equal_differ_or_cannot_be_read_have_their_own_exit_codes(
    home: Path,
) -> None:
    lines = said("replay", "runs.jsonl")
    assert [line.split(": ")[1] for line in lines] == [
        "equal, 9 steps, limit (max_turns)",
        "equal, 5 steps, completed (answered)",
    ]
    text = (home / "runs.jsonl").read_text()
    (home / "other.jsonl").write_text(text.replace('"turns":2', '"turns":1', 1))
    first, second = said("replay", "other.jsonl", code=1)
    assert "differs at step 5 (line 6): recorded turn 2, now end limit (max_turns)" in first
    assert "not replayed: it goes on from run" in second
    (home / "broken.jsonl").write_text("nothing\n")
    ended = loopwright(home, "replay", "broken.jsonl")
    assert ended.code == 2 and "it holds no run" in ended.err


def test_a_run_that_carries_on_another_one_is_not_replayed(home: Path) -> None:
    lines = [json.loads(line) for line in (home / "runs.jsonl").read_text().splitlines()]
    second = [line for line in lines if line["run"] == lines[-1]["run"]]
    (home / "second.jsonl").write_text("".join(json.dumps(line) + "\n" for line in second))
    (line,) = said("replay", "second.jsonl", code=2)
    assert "not replayed: it goes on from run" in line


def test_run_writes_a_trace_where_it_is_told_to(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "one\n"})
    ended = loopwright(tmp_path, "run", "read a.txt", "--trace", "t.jsonl", "--database", "t.db")
    assert ended.code == 0
    shown = loopwright(tmp_path, "trace", "t.jsonl")
    assert "completed (answered)" in shown.out and "tool read_file" in shown.out
    assert loopwright(tmp_path, "replay", "t.jsonl").code == 0
