"""Whether a process that wrote down who it is still lives."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from loopwright.state import owner
from loopwright.state.owner import Process, this_process
from tests.support.processes import output

WAITS = [sys.executable, "-c", "print(flush=True); input()"]


def process(number: int) -> Process:
    """A process of this machine as it would write itself down."""
    return replace(this_process(), number=number, began=owner._began(number) or "")


def test_the_process_that_asks_is_not_gone() -> None:
    me = this_process()
    assert me.number == os.getpid()
    assert not me.is_gone()


def test_another_one_is_there_until_it_ends_also_if_nobody_has_waited_for_its_end() -> None:
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline()
        there = process(other.pid)
        assert not there.is_gone()
        other.send_signal(signal.SIGSTOP)
        os.waitpid(other.pid, os.WUNTRACED)
        assert not there.is_gone()
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert there.is_gone()
    assert there.is_gone()


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    assert replace(this_process(), began="1").is_gone()


def test_nothing_is_said_about_other_machines_and_unknown_ones() -> None:
    gone = replace(this_process(), began="1")
    assert not replace(gone, machine="another boot").is_gone()
    assert not replace(gone, machine="").is_gone()


def test_a_process_is_not_gone_because_it_cannot_be_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(owner, "_began", lambda number: "")
    assert not this_process().is_gone()


def test_where_the_system_tells_nothing_a_lease_has_to_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "readlink", refuse)
    assert owner._machine() == ""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert owner._machine() == this_process().host


def test_a_forked_child_is_another_process() -> None:
    script = """
        import os
        from loopwright.state.owner import this_process

        me = this_process()
        child = os.fork()
        if child == 0:
            os._exit(this_process() == me or this_process().number != os.getpid())
        print(os.waitpid(child, 0)[1])
    """
    assert output(script) == "0"
