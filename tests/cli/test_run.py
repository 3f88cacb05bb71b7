"""`loopwright run`: the answer on stdout, everything else on stderr, or every event as JSON."""

import json
from pathlib import Path

from loopwright.events import AgentEnd, ToolExecutionEnd, from_json
from loopwright.testing import HttpReply, OpenAIServer, Response
from tests.cli.running import Ended, loopwright, stored
from tests.providers.offline.folders import write


def scripted(home: Path, server: OpenAIServer, *words: str) -> Ended:
    """A run with a model behind a real server."""
    return loopwright(
        home, "run", *words, "--model", "custom/m", LOOPWRIGHT_BASE_URL=server.base_url
    )


def test_only_the_answer_is_on_stdout(tmp_path: Path) -> None:
    folder = write(tmp_path / "work", {"a.txt": "one\n"})
    done = loopwright(tmp_path, "run", "list files", "--workspace", folder)
    assert done.code == 0
    assert done.out.split("\n")[-2] == "a.txt"
    assert "->" not in done.out
    assert "list_files()" in done.err
    assert "completed" in done.err


def test_the_current_folder_is_the_workspace_unless_told(tmp_path: Path) -> None:
    write(tmp_path, {"here.txt": "one\n"})
    assert "here.txt has 1 line" in loopwright(tmp_path, "run", "read here.txt").out


def test_json_prints_every_event_on_a_line(tmp_path: Path) -> None:
    write(tmp_path, {"说明.txt": "one\x1b[31m\n"})
    done = loopwright(tmp_path, "run", "read 说明.txt", "--json", PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    events = [from_json(json.loads(line)) for line in done.out.splitlines()]
    assert [event.sequence for event in events] == list(range(len(events)))
    end = events[-1]
    assert isinstance(end, AgentEnd) and end.status == "completed"
    (result,) = [event for event in events if isinstance(event, ToolExecutionEnd)]
    assert result.content == "one\x1b[31m"


def test_a_prompt_may_come_from_standard_input(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "one\n"})
    assert "a.txt has 1 line" in loopwright(tmp_path, "run", "-", given="read a.txt\n").out


def test_a_model_behind_a_server_answers(tmp_path: Path) -> None:
    call = ("c1", "read_file", {"path": "a.txt"})
    write(tmp_path, {"a.txt": "forty-two\n"})
    with OpenAIServer([Response(calls=[call]), "It says \x1b[31mforty-two."]) as server:
        done = scripted(tmp_path, server, "what does a.txt say?")
        sent = server.requests[1].body["messages"]
    assert (done.code, done.out) == (0, "It says forty-two.\n")
    assert sent[-1]["content"] == "forty-two"


def test_an_answer_is_printed_as_it_is(tmp_path: Path) -> None:
    text = "all:\n\tmake [bold]it[/bold]  :smile: " + "x" * 300
    with OpenAIServer([text]) as server:
        assert scripted(tmp_path, server, "a makefile, please").out == text + "\n"


def test_a_failing_model_fails_the_run_and_the_prompt_is_kept(tmp_path: Path) -> None:
    where = ("--thread", "mine", "--database", "t.db")
    refusal = HttpReply(status=400, body={"error": {"message": "no such model", "type": "x"}})
    with OpenAIServer([refusal]) as server:
        done = scripted(tmp_path, server, "hello", *where)
    assert done.code == 1
    assert done.out == ""
    assert "failed" in done.err and "no such model" in done.err
    assert stored(tmp_path / "t.db", "mine") == ["hello", ""]
    assert loopwright(tmp_path, "run", "list files", *where).code == 0
