"""One run of a thread at a time over real processes: races, kills, suspensions, other threads."""

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest

from loopwright import Agent
from loopwright.errors import BusyThreadError
from loopwright.state.lease_table import EXPIRY, LeaseTable
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel, VirtualClock
from tests.support.graphs import outline
from tests.support.processes import start

HOLDS = """
    import sys
    from loopwright import Agent
    from loopwright.errors import LeaseLostError
    from loopwright.testing import Response, ScriptedModel

    def wait() -> str:
        "Return when a line comes in."
        print("waiting", flush=True)
        sys.stdin.readline()
        return "waited"

    calls = Response(text="I wait.", calls=[("c1", "wait", {})])
    model = ScriptedModel([calls, "first is done"])
    with Agent(model, [wait], database=sys.argv[1], thread="t") as agent:
        try:
            print(agent.run("first").status)
        except LeaseLostError as error:
            print(error)
"""


def says(process: "Popen[str]") -> str:
    """The next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "Popen[str]") -> None:
    """Let a process go on that waits for a line."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def agent(path: Path, *script: str | Response) -> Agent:
    return Agent(ScriptedModel(script), database=path, thread="t")


def table_of(one: Agent) -> LeaseTable:
    table = getattr(one.graph.checkpointer, "leases", None)
    assert isinstance(table, LeaseTable)
    return table


def rows(one: Agent) -> int:
    """How many leases the file has."""
    with table_of(one).database.transaction() as cursor:
        (count,) = cursor.execute("SELECT count(*) FROM loopwright_leases").fetchone()
    return int(count)


def test_a_thread_that_another_process_runs_is_refused_until_that_run_is_over(
    tmp_path: Path,
) -> None:
    script = ("aside", "second")
    with start(HOLDS, tmp_path / "t.db") as holder, agent(tmp_path / "t.db", *script) as other:
        assert says(holder) == "waiting"
        with pytest.raises(BusyThreadError, match=f"'t' is busy: process {holder.pid} on ") as busy:
            other.run("mine")
        assert busy.value.holder is not None and busy.value.holder.process == holder.pid
        assert other.run("mine", thread="another").status == "completed"
        assert outline(other.messages()) == ["user: first", "assistant: I wait. [c1]"]
        changes: list[Callable[[], object]] = [
            lambda: other.rewind(at=1),
            lambda: other.delete("t"),
            other.reset,
        ]
        for change in changes:
            with pytest.raises(BusyThreadError):
                change()
        tell(holder)
        assert says(holder) == "completed"
        assert other.run("mine").final_text == "second"
        assert rows(other) == 0


def test_a_holder_that_was_killed_holds_nothing_and_the_next_takes_over_at_once(
    tmp_path: Path,
) -> None:
    with agent(tmp_path / "t.db", "second") as other, start(HOLDS, tmp_path / "t.db") as holder:
        assert says(holder) == "waiting"
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked how it ended
        assert other.run("mine").final_text == "second"
        assert not faults(other.messages())


def test_a_holder_that_slept_too_long_writes_nothing_more_and_says_so(tmp_path: Path) -> None:
    with agent(tmp_path / "t.db", "second") as other, start(HOLDS, tmp_path / "t.db") as holder:
        assert says(holder) == "waiting"
        holder.send_signal(signal.SIGSTOP)
        os.waitpid(holder.pid, os.WUNTRACED)
        with pytest.raises(BusyThreadError):  # it may come back
            other.run("mine")
        table_of(other).clock = VirtualClock(table_of(other).clock.now() + EXPIRY)
        assert other.run("mine").final_text == "second"
        before = other.messages()
        holder.send_signal(signal.SIGCONT)
        tell(holder)
        assert "of thread 't' was suspended or cut off for longer than its lease" in says(holder)
        assert (holder.wait(60), holder.stderr and holder.stderr.read()) == (0, "")
        assert other.messages() == before
        assert outline(before)[-2:] == ["user: mine", "assistant: second"]
        assert not faults(before)
        assert rows(other) == 0
    with agent(tmp_path / "t.db", "third") as again:
        assert again.run("more").final_text == "third"


RACES = """
    import asyncio, sys
    from loopwright import Agent
    from loopwright.errors import BusyThreadError
    from loopwright.testing import ScriptedModel

    async def hold(event) -> None:
        if event.type == "agent_start":
            print("won", flush=True)
            await asyncio.to_thread(sys.stdin.readline)

    async def main() -> None:
        async with Agent(ScriptedModel(["done"] * 50), database=sys.argv[1]) as agent:
            agent.subscribe(hold)
            while thread := sys.stdin.readline().strip():
                try:
                    await agent.prompt(sys.argv[2], thread=thread)
                except BusyThreadError as error:
                    print("lost to", error.holder.process, flush=True)
                    await asyncio.to_thread(sys.stdin.readline)
                print("over", flush=True)

    asyncio.run(main())
"""


def test_of_two_processes_that_race_for_a_thread_exactly_one_wins_each_time(
    tmp_path: Path,
) -> None:
    with agent(tmp_path / "t.db") as judge, ExitStack() as ends:
        racers = [ends.enter_context(start(RACES, tmp_path / "t.db", n)) for n in "ab"]
        winners = set()
        for number in range(50):
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"t{number % 7}\n")
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.flush()
            told = {says(racer): racer for racer in racers}
            winner = told.pop("won")
            assert list(told) == [f"lost to {winner.pid}"]
            winners.add(winner.pid)
            for racer in racers:
                tell(racer)
            assert [says(racer) for racer in racers] == ["over", "over"]
        for racer in racers:
            out, err = racer.communicate(timeout=60)
            assert (racer.returncode, out, err) == (0, "", "")
        assert winners == {racer.pid for racer in racers}
        assert sum(len(judge.messages(f"t{n}")) for n in range(7)) == 100
        assert rows(judge) == 0


CROWD = """
    import asyncio, sys
    from loopwright import Agent
    from loopwright.testing import Response, ScriptedModel

    async def look() -> str:
        "Look."
        return "seen"

    def answer(messages):
        return "done" if len(messages) > 1 else Response(calls=[("c1", "look", {})])

    async def main() -> None:
        async with Agent(ScriptedModel([answer] * 40), [look], database=path) as agent:
            runs = [agent.prompt("hi", thread=f"{name} {number}") for number in range(20)]
            ended = await asyncio.gather(*runs)
            print({run.status for run in ended})

    path, name = sys.argv[1:]
    asyncio.run(main())
"""


def test_processes_on_different_threads_do_not_disturb_one_another(tmp_path: Path) -> None:
    with ExitStack() as ends:
        crowd = [ends.enter_context(start(CROWD, tmp_path / "t.db", n)) for n in "abcd"]
        ended = [one.communicate(timeout=120) for one in crowd]
    assert ended == [("{'completed'}\n", "")] * 4
    with agent(tmp_path / "t.db") as judge:
        assert {len(judge.messages(info.id)) for info in judge.threads()} == {4}
        assert len(judge.threads()) == 80
        assert rows(judge) == 0
