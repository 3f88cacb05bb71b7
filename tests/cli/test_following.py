"""Ctrl-C, a closed pipe and a terminal: a run can be left in order, at once, and quietly."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopwright.testing import Gate, OpenAIServer, Response
from tests.cli.running import COMMAND, SECONDS, begin, environment, stored

STUCK_TOOL = """
import asyncio, sys, threading
from loopwright import Agent
from loopwright.cli.following import exit_code, follow
from loopwright.testing import Response, ScriptedModel

def stuck() -> str:
    "Never ends."
    print("in the tool", flush=True)
    threading.Event().wait()
    return ""

async def main() -> int:
    model = ScriptedModel([Response(calls=[("c1", "stuck", {})]), "done"])
    async with Agent(model, [stuck]) as agent:
        return exit_code(await follow(agent, "go", agent.thread, lambda event: None))

sys.exit(asyncio.run(main()))
"""


@contextmanager
def started(
    home: Path, command: Sequence[str], **variables: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is gone when the block ends."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home, **variables),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(stream: object, word: bytes) -> bytes:
    """What comes from a pipe up to and with a word; fails if it ends before."""
    seen = b""
    while word not in seen:
        piece = os.read(stream.fileno(), 1)  # type: ignore[attr-defined]
        assert piece, seen
        seen += piece
    return seen


def test_ctrl_c_cancels_the_run_in_order_and_the_thread_goes_on(tmp_path: Path) -> None:
    gate, where = Gate(), ("--thread", "mine", "--database", "t.db")
    answer = Response(text=["Hello", " and goodbye"], wait_for=gate, wait_after=2)
    with OpenAIServer([answer]) as server:
        command = [*COMMAND, "run", "hi", "--model", "custom/m", *where]
        with started(tmp_path, command, LOOPWRIGHT_BASE_URL=server.base_url) as run:
            read_until(run.stdout, b"Hello")
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=SECONDS)
        gate.open()
    assert run.returncode == 130
    assert out == b"\n"
    assert b"cancelling; press Ctrl-C again" in err
    assert b"cancelled" in err.split(b"at once")[1]
    assert b"Traceback" not in err
    assert stored(tmp_path / "t.db", "mine") == ["hi", "Hello"]
    begin(tmp_path / "t.db", "mine", "hello")


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    with started(tmp_path, [sys.executable, "-c", STUCK_TOOL]) as run:
        read_until(run.stdout, b"in the tool")
        run.send_signal(signal.SIGINT)
        read_until(run.stderr, b"at once\n")
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.parametrize("words", [("demo",), ("run", "list files", "--json")])
def test_a_closed_pipe_is_no_noise(tmp_path: Path, words: tuple[str, ...]) -> None:
    with started(tmp_path, [*COMMAND, *words]) as run:
        assert run.stdout is not None
        run.stdout.read(1)
        run.stdout.close()
        run.stdout = None
        _, err = run.communicate(timeout=SECONDS)
    assert (run.returncode, err) == (1, b"")


def on_a_terminal(home: Path, *words: str, **variables: str) -> bytes:
    """What a command prints when its streams are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=home,
        env=environment(home, TERM="xterm-256color", **variables),
    )
    os.close(theirs)
    printed = b""
    try:
        while piece := _read(ours):
            printed += piece
    finally:
        os.close(ours)
        process.kill()
        process.wait(timeout=SECONDS)
    return printed


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end was closed: Linux says so with EIO
        return b""


def test_a_terminal_gets_colours_and_no_cut_lines(tmp_path: Path) -> None:
    printed = on_a_terminal(tmp_path, "demo", COLUMNS="20")
    assert b"\x1b[36m-> 1  list_files" in printed
    assert b"- web/chart.js:9: length: Math.round((total / most) * width), // XXX" in printed


def test_no_color_is_respected(tmp_path: Path) -> None:
    printed = on_a_terminal(tmp_path, "demo", NO_COLOR="1")
    assert b"-> 1  list_files" in printed
    assert b"\x1b[36m" not in printed and b"\x1b[32m" not in printed
