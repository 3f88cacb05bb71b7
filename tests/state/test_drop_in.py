"""In LangGraph's own saver's stead: the same state and history for every kind of graph."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.graphs import on
from tests.support.processes import output, start
from tests.support.savers import KINDS, Opener, chat, folding, history, ours, stock, talk, told

READ = """
    import sys
    from pathlib import Path
    from tests.support import savers
    make, _ = savers.KINDS[sys.argv[2]]
    with getattr(savers, sys.argv[3])(Path(sys.argv[1])) as saver:
        print(savers.history(make(saver))[: int(sys.argv[4])])
"""


def worked(opened: Opener, path: Path, kind: str) -> list[Any]:
    """The history of a thread on which a graph of this kind was used."""
    make, work = KINDS[kind]
    with opened(path) as saver:
        graph = make(saver)
        work(graph)
        return history(graph)


@pytest.mark.parametrize("opened", [ours, folding])
@pytest.mark.parametrize("kind", KINDS)
def test_state_and_history_are_the_stock_saver_s(kind: str, opened: Opener, tmp_path: Path) -> None:
    mine = worked(opened, tmp_path / "ours.db", kind)
    theirs = worked(stock, tmp_path / "stock.db", kind)
    assert mine == theirs
    again = output(READ, tmp_path / "ours.db", kind, opened.__name__, 99)
    assert again == output(READ, tmp_path / "stock.db", kind, "stock", 99)
    assert again == str(mine)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_state_survives_a_prune_and_goes_on(kind: str, tmp_path: Path) -> None:
    make, work = KINDS[kind]
    newest = worked(ours, tmp_path / "ours.db", kind)[0]
    worked(stock, tmp_path / "stock.db", kind)
    with ours(tmp_path / "ours.db") as saver:
        saver.prune(["t"])
        saver.prune(["t"])
    assert output(READ, tmp_path / "ours.db", kind, "ours", 1) == str([newest])
    with ours(tmp_path / "ours.db") as saver, stock(tmp_path / "stock.db") as other:
        for each in (saver, other):
            work(make(each))
        assert told(make(saver).get_state(on("t"))) == told(make(other).get_state(on("t")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stock_file_is_opened_in_place(kind: str, tmp_path: Path) -> None:
    make, work = KINDS[kind]
    theirs = worked(stock, tmp_path / "a.db", kind)
    assert worked(stock, tmp_path / "b.db", kind) == theirs
    with ours(tmp_path / "a.db") as saver:
        assert history(make(saver)) == theirs
        work(make(saver))
        mine = history(make(saver))
        assert mine[-len(theirs) :] == theirs
    with stock(tmp_path / "b.db") as other:
        work(make(other))
        assert history(make(other)) == mine


@pytest.mark.parametrize("fold", [False, True])
def test_the_public_suite_finds_and_passes_every_capability(tmp_path: Path, fold: bool) -> None:
    @checkpointer_test(name="loopwright")
    async def registered() -> Any:
        database = Database(tmp_path / "threads.db")
        yield SqliteCheckpointer(database, fold_writes=fold)
        await asyncio.to_thread(database.close)

    report = asyncio.run(validate(registered))
    failed = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failed == {}
    assert all(result.detected for result in report.results.values())
    assert set(report.results) >= {"put", "list", "copy_thread", "delete_for_runs", "prune"}


def test_siblings_that_had_finished_before_a_kill_do_not_run_again(tmp_path: Path) -> None:
    script = """
        import os, signal, sys, threading
        from pathlib import Path
        from typing import Annotated
        import operator
        from langgraph.graph import START, StateGraph
        from langgraph.types import Send
        from typing_extensions import TypedDict
        from tests.support.graphs import on
        from tests.support.savers import ours

        class State(TypedDict):
            done: Annotated[list, operator.add]

        killed = len(sys.argv) > 2
        ran = Path(sys.argv[1]) / "ran"

        def part(state):
            with open(ran, "a") as file:
                file.write(f"{state['item']} ")
            if killed and state["item"] == 3:
                writes = 0
                while writes < 2:  # its siblings' results are stored in the meantime
                    with saver.cursor(transaction=False) as cursor:
                        (writes,) = cursor.execute(
                            "SELECT count(*) FROM writes WHERE channel = 'done'"
                            " AND length(value) > 1"  # the input's is an empty list
                        ).fetchone()
                os.kill(os.getpid(), signal.SIGKILL)
            return {"done": [state["item"]]}

        builder = StateGraph(State)
        builder.add_node("part", part)
        builder.add_conditional_edges(
            START, lambda state: [Send("part", {"item": item}) for item in (1, 2, 3)], ["part"]
        )
        with ours(Path(sys.argv[1]) / "threads.db") as saver:
            graph = builder.compile(checkpointer=saver)
            given = {"done": []} if killed else None
            print(graph.invoke(given, on("t"), durability="sync"))
    """
    with start(script, tmp_path, "kill") as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "3"]
    assert output(script, tmp_path) == "{'done': [1, 2, 3]}"
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "3", "3"]


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    script = """
        import sys
        from pathlib import Path
        from tests.support.savers import chat, history, ours, talk
        print("ready", flush=True)
        open(Path(sys.argv[1]) / "gate").close()
        with ours(Path(sys.argv[1]) / "threads.db") as saver:
            graph = chat(saver)
            for number in range(5):
                talk(graph, f"{sys.argv[2]} {number}")
                talk(graph, "shared")
            texts = [str(history(graph, f"{sys.argv[2]} {number}")) for number in range(5)]
            assert len(set(texts)) == 1
            print(texts[0])
    """
    os.mkfifo(tmp_path / "gate")
    processes = [start(script, tmp_path, name) for name in "ab"]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    with open(tmp_path / "gate", "w"):
        told = [process.communicate(timeout=100) for process in processes]
    assert [err for _, err in told] == ["", ""]
    with ours(tmp_path / "threads.db") as saver:
        graph = chat(saver)
        talk(graph)
        assert {out.strip() for out, _ in told} == {str(history(graph))}
        shared = history(graph, "shared")
        assert [len(values["messages"]) for values, *_ in shared if "messages" in values]
