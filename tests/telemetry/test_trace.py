"""A trace file: what is in it, who may read it, what it never holds, and what may go wrong."""

import asyncio
import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import SecretStr

from loopwright import Agent, ConfigurationError, Environment, Hooks
from loopwright.errors import TraceFileError
from loopwright.runs import Run
from loopwright.telemetry import file as trace_file
from loopwright.telemetry.reading import read
from loopwright.telemetry.recording import Recorder
from loopwright.telemetry.steps import Step, StepListener
from loopwright.telemetry.trace import Trace
from loopwright.testing import OpenAIServer, Response, VirtualClock
from tests.support.providers import ScriptedProvider, said

CALL = said("I look.", ("c1", "look", {}))


def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.jsonl"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_each_step_is_a_line(file: Path) -> None:
    with Agent(ScriptedProvider(CALL, "done"), [look], "Be kind.", trace=file, thread="t") as agent:
        result = agent.run("hi")
        found = lines(file)  # they are there when the result is
    kinds = ["run", "turn", "message", "model", "tool", "turn", "model", "end"]
    assert [line["type"] for line in found] == kinds
    assert [line["step"] for line in found] == list(range(8))
    assert {(line["run"], line["thread"]) for line in found} == {(result.run_id, "t")}
    assert (found[0]["settings"]["limits"]["turns"], found[0]["system_prompt"]) == (90, "Be kind.")
    assert (found[4]["name"], found[4]["content"], found[4]["call"]) == ("look", "seen", "c1")
    assert (found[-1]["status"], found[-1]["reason"]) == ("completed", "answered")


def test_only_its_owner_may_read_it_also_if_it_was_there(file: Path) -> None:
    file.write_text("")
    file.chmod(0o644)
    for _ in range(2):
        with Agent(ScriptedProvider("done"), trace=file) as agent:
            agent.run("hi")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(read(file).runs) == 2


def test_it_is_off_unless_it_is_asked_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Agent(ScriptedProvider("done")) as agent:
        agent.run("hi")
        assert agent.graph.dependencies.observers == ()
    monkeypatch.setenv("LOOPWRIGHT_TRACE", str(file))
    with Agent(ScriptedProvider("done")) as agent:
        agent.run("hi")
    assert read(file).runs


@pytest.mark.parametrize("where", ["", "missing/runs.jsonl"])
def test_a_path_that_can_hold_no_file_is_refused(where: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name a file"):
        Agent("offline", trace=tmp_path / where)


def test_bounds_are_checked(file: Path) -> None:
    for wrong in (0, True, 1.5):
        with pytest.raises(ConfigurationError, match="use a whole number"):
            Trace(file, field_characters=wrong)  # type: ignore[arg-type]


# ---- secrets


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    call = Response(calls=[("c1", "print_key", {})])
    with OpenAIServer([call, Response(text="done", stop="length")] * 3) as running:
        yield running


KEY = 'sk-live/+"7'


def print_key() -> str:
    """Print all that is known of the key."""
    return f"key={KEY} json={json.dumps({'key': KEY})} url=?key=sk-live%2F%2B%227"


@pytest.mark.parametrize("way", ["environment", "settings", "per request", "model object"])
def test_a_run_that_prints_its_own_key_leaves_no_key_in_the_trace(
    way: str, file: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_openai import ChatOpenAI

    model: Any = "custom/any"
    hooks, key = Hooks(), "other-key-1"
    if way == "environment":
        monkeypatch.setenv("SOME_API_KEY", KEY)
    elif way == "settings":
        key = KEY
    elif way == "per request":
        hooks = Hooks(get_api_key=lambda provider: KEY)
    else:
        model = ChatOpenAI(model="any", base_url=server.base_url, api_key=SecretStr(KEY))
    environment = Environment(base_url=server.base_url, api_key=SecretStr(key))
    options: dict[str, Any] = {"environment": environment, "hooks": hooks, "trace": file}
    with Agent(model, [print_key], **options) as agent:
        result = agent.run("hi")
    assert KEY in str(result.messages[2].content), "the tool has printed it"
    text = file.read_text(encoding="utf-8")
    assert "[redacted]" in text and '"type":"tool"' in text
    for part in (KEY, "sk-live", json.dumps(KEY)[1:-1], "%2F%2B%227"):
        assert part not in text


def test_further_secrets_may_be_named(file: Path) -> None:
    trace = Trace(file, secrets=["seen"])
    with Agent(ScriptedProvider(CALL, "done"), [look], thread="seen", observers=[trace]) as agent:
        agent.run("seen?")
    trace.close()
    assert "seen" not in file.read_text(encoding="utf-8")
    assert {run.thread for run in read(file).runs} == {"[redacted]"}


# ---- bounds


def test_a_field_is_cut_and_the_line_says_so(file: Path) -> None:
    def shout() -> str:
        """Say a lot."""
        return "x" * 500

    trace = Trace(file, field_characters=200)
    script: list[Any] = [said("", ("c1", "shout", {})), "done"]
    with Agent(ScriptedProvider(*script), [shout], observers=[trace]) as agent:
        agent.run("hi")
        agent.run("hi")
    trace.close()
    (tool,) = read(file).runs[0].of("tool")
    assert (tool["content"], tool["cut"]) == ("x" * 200, ["content"])


def test_a_file_that_is_full_says_so_and_takes_no_more(file: Path) -> None:
    trace = Trace(file, file_bytes=3000)
    with Agent(ScriptedProvider(*["done"] * 9), observers=[trace]) as agent:
        for _ in range(9):
            assert agent.run("hi").status == "completed"
    trace.close()
    assert file.stat().st_size <= 3000 + 60
    found = read(file)
    assert found.full and 1 <= len(found.runs) < 9


# ---- what may go wrong


def test_a_full_disk_ends_no_run_and_the_loss_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, write = [False], os.write

    def writing(descriptor: int, data: Any) -> int:
        if full[0]:
            if len(data) > 40:
                return write(descriptor, bytes(data)[:20])  # what a disk still takes
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)
    with Agent(ScriptedProvider(*["done"] * 3), trace=file, thread="t") as agent:
        agent.run("one")
        full[0] = True
        assert agent.run("two").status == "completed"
        full[0] = False
        assert agent.run("three").status == "completed"
    found = read(file)
    assert [run.lines[-1]["type"] for run in found.runs] == ["end", "end"]
    assert found.lost >= 5
    assert found.runs[-1].lines[0]["history"], "nothing is taken from lines that are lost"


def test_a_folder_that_is_gone_ends_no_run(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with Agent(ScriptedProvider("done"), trace=folder / "runs.jsonl") as agent:
        folder.rmdir()
        assert agent.run("hi").status == "completed"


def test_an_observer_that_fails_ends_no_run(caplog: pytest.LogCaptureFixture, file: Path) -> None:
    class Broken(StepListener):
        heard = 0

        def ended(self, step: Step) -> None:
            self.heard += 1
            raise KeyError("observer")

    broken = Broken()

    def watch(run: Run) -> None:
        Recorder.watch(run, [broken], VirtualClock())

    with Agent(ScriptedProvider(CALL, "done"), [look], observers=[watch], trace=file) as agent:
        assert agent.run("hi").status == "completed"
    assert broken.heard == 1 and "an observer failed" in caplog.text
    assert read(file).runs[0].end


@pytest.mark.anyio
async def test_a_run_that_is_cancelled_from_outside_has_an_end(file: Path) -> None:
    inside = asyncio.Event()

    async def hang() -> str:
        """Wait for ever."""
        inside.set()
        return await asyncio.Future()

    async with Agent(ScriptedProvider(said("", ("c1", "hang", {}))), [hang], trace=file) as agent:
        task = asyncio.ensure_future(agent.prompt("hi"))
        await inside.wait()
        task.cancel()
        await asyncio.wait([task])
        await agent.wait_for_idle()
    (run,) = read(file).runs
    assert run.end is not None and run.end["status"] == "cut_off"
    (tool,) = run.of("tool")
    assert tool["unfinished"]


def test_a_forked_child_writes_with_a_thread_of_its_own(file: Path) -> None:
    trace = trace_file.TraceFile(file)
    trace.append(b'{"from":"parent"}\n')
    trace.close()
    trace.append(b'{"from":"parent again"}\n')
    child = os.fork()
    if not child:
        trace.append(b'{"from":"child"}\n')
        trace.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    trace.close()
    assert {line["from"] for line in lines(file)} == {"parent", "parent again", "child"}


# ---- reading


def test_torn_and_foreign_lines_are_counted(file: Path) -> None:
    with Agent(ScriptedProvider("done"), trace=file) as agent:
        agent.run("hi")
    whole = file.read_bytes()
    file.write_bytes(b"no json\n[1]\n" + whole + whole[:40])
    found = read(file)
    assert (len(found.runs), found.lost) == (1, 3)


@pytest.mark.parametrize("content", [None, "", "no trace\n", '{"type":"lost","lines":1}\n'])
def test_a_file_without_a_run_is_refused(content: str | None, file: Path) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(TraceFileError, match=r"runs\.jsonl"):
        read(file)


def test_a_later_format_is_refused(file: Path) -> None:
    with Agent(ScriptedProvider("done"), trace=file) as agent:
        agent.run("hi")
    file.write_text(file.read_text().replace('"format":1', '"format":2'))
    with pytest.raises(TraceFileError, match=r"line 1 of trace .* has format 2") as refused:
        read(file)
    assert refused.value.line == 1


def test_usage_and_cost_are_told_where_the_provider_reports_them(file: Path) -> None:
    def paid(cost: Any) -> AIMessage:
        usage = UsageMetadata(input_tokens=3, output_tokens=4, total_tokens=7)
        told = {"token_usage": {"cost": cost}}
        return AIMessage("done", usage_metadata=usage, response_metadata=told)

    with Agent(ScriptedProvider(*map(paid, (0.25, "free", True, -1))), trace=file) as agent:
        for _ in range(4):
            agent.run("hi")
    first, *others = read(file).runs
    (model,), end = first.of("model"), first.lines[-1]
    assert (model["usage"]["total_tokens"], model["cost"]) == (7, 0.25)
    assert (end["usage"]["total_tokens"], end["cost"]) == (7, 0.25)
    assert not any("cost" in line for run in others for line in run.lines)
