"""Checkpoints that only say where a graph is: committed with the next one, and never missed."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from operator import add
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from loopwright.errors import LeaseLostError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.lease_table import LEASE_KEY
from tests.support.graphs import on

Look = Callable[[str], None]


class State(TypedDict):
    """What is kept, and a word that only says where the graph is."""

    items: Annotated[list[str], add]
    word: str


@contextmanager
def passing(path: Path) -> Iterator[SqliteCheckpointer]:
    database = Database(path)
    try:
        yield SqliteCheckpointer(database, fold_writes=True, passing=["word"])
    finally:
        database.close()


def built(saver: SqliteCheckpointer, look: Look = lambda node: None, asks: bool = False) -> Any:
    """Two nodes that keep something, around two that only say where the graph is."""

    async def one(state: State) -> Any:
        return {"items": ["one"]}

    async def two(state: State) -> Any:
        look("two")
        return {"word": "two"}

    async def three(state: State) -> Any:
        look("three")
        if asks:
            interrupt("?")
        return {"word": "three"}

    async def four(state: State) -> Any:
        look("four")
        return {"items": ["four"]}

    graph = StateGraph(State)
    for node in (one, two, three, four):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", "three")
    graph.add_edge("three", "four")
    graph.add_edge("four", END)
    return graph.compile(checkpointer=saver)


def stored(path: Path) -> int:
    """How many checkpoints another process finds."""
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
        return int(number)


def words(snapshots: list[Any]) -> list[str]:
    return [s.values.get("word", "") for s in reversed(snapshots)]


@pytest.mark.anyio
async def test_it_is_committed_with_the_next_checkpoint(tmp_path: Path) -> None:
    path, seen = tmp_path / "t.db", dict[str, int]()
    with passing(path) as saver:
        graph = built(saver, lambda node: seen.update({node: stored(path)}))
        await graph.ainvoke({"items": []}, on("t"), durability="sync")
        assert seen == {"two": 3, "three": 3, "four": 3}
        assert stored(path) == 6
        assert words([s async for s in graph.aget_state_history(on("t"))]) == [
            *["", "", ""],
            *["two", "three", "three"],
        ]


@pytest.mark.anyio
async def test_whoever_reads_here_finds_it(tmp_path: Path) -> None:
    found: list[Any] = []
    with passing(tmp_path / "t.db") as saver:
        graph = built(saver, lambda node: found.append(saver.get_tuple(on("t"))))
        await graph.ainvoke({"items": []}, on("t"), durability="sync")
    assert [tuple.checkpoint["channel_values"].get("word") for tuple in found] == [
        None,
        "two",
        "three",
    ]


@pytest.mark.anyio
async def test_a_kill_leads_back_to_the_checkpoint_before(tmp_path: Path) -> None:
    path, copy, steps = tmp_path / "t.db", tmp_path / "copy.db", list[str]()

    def look(node: str) -> None:
        if node == "four":  # what a kill here would leave
            with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(copy)) as there:
                here.backup(there)

    with passing(path) as saver:
        whole = await built(saver, look).ainvoke({"items": []}, on("t"), durability="sync")
    with passing(copy) as saver:
        graph = built(saver, steps.append)
        assert await graph.ainvoke(None, on("t"), durability="sync") == whole
    assert steps == ["two", "three", "four"]


@pytest.mark.anyio
async def test_an_interrupt_is_committed_at_once_and_what_passed_before_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with passing(path) as saver:
        await built(saver, asks=True).ainvoke({"items": []}, on("t"), durability="sync")
        assert stored(path) == 4
    with passing(path) as saver:
        state = await built(saver).aget_state(on("t"))
        assert state.next == ("three",)
        assert [i.value for i in state.interrupts] == ["?"]


@pytest.mark.anyio
async def test_closing_commits_what_passes(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with passing(path) as saver:
        await built(saver).ainvoke(
            {"items": []}, on("t"), durability="sync", interrupt_before=["four"]
        )
        assert stored(path) == 3
    assert stored(path) == 5


@pytest.mark.anyio
async def test_the_end_of_a_graph_does_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with passing(path) as saver:

        async def last(state: State) -> Any:
            return {"word": "last"}

        graph = StateGraph(State).add_node("last", last).add_edge(START, "last")
        compiled: Any = graph.add_edge("last", END).compile(checkpointer=saver)
        await compiled.ainvoke({"items": []}, on("t"), durability="sync")
        assert stored(path) == 3


@pytest.mark.anyio
async def test_it_stays_until_it_could_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with passing(path) as saver:
        graph = built(saver)
        await graph.ainvoke({"items": []}, on("t"), durability="sync", interrupt_before=["four"])
        with pytest.raises(ZeroDivisionError), saver.transaction():
            raise ZeroDivisionError
        assert stored(path) == 3
        saver.flush()
        assert stored(path) == 5


@pytest.mark.anyio
async def test_one_that_cannot_be_stored_is_its_own_run_s_affair(tmp_path: Path) -> None:
    path, others = tmp_path / "t.db", list[str]()
    with passing(path) as saver:

        async def look(node: str) -> None:
            state = await built(saver).ainvoke({"items": [node]}, on(node), durability="sync")
            others.extend(state["items"])

        async def strange(state: State) -> Any:
            return {"word": object()}

        async def another(state: State) -> Any:
            await look("another thread")
            return {"items": ["lost"]}

        graph = StateGraph(State).add_node("strange", strange).add_node("another", another)
        graph.add_edge(START, "strange").add_edge("strange", "another")
        compiled: Any = graph.compile(checkpointer=saver)
        with pytest.raises(TypeError, match="serializable"):
            await compiled.ainvoke({"items": ["kept"]}, on("t"), durability="sync")
        assert others == ["another thread", "one", "four"]
        assert (await compiled.aget_state(on("t"))).values == {"items": ["kept"]}
        compiled = built(saver)
        again = await compiled.ainvoke({"items": []}, on("t"), durability="sync")
        assert again["items"] == ["kept", "one", "four"]


@pytest.mark.anyio
async def test_one_whose_run_has_lost_its_lease_is_never_stored(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with passing(path) as saver:
        lease = saver.leases.local.claim("t")
        await saver.leases.take(lease, "run")
        config = on("t")
        config["configurable"][LEASE_KEY] = lease

        def lose(node: str) -> None:
            if node == "three":  # what `two` wrote is passing now
                with saver.database.transaction() as cursor:
                    cursor.execute("UPDATE loopwright_leases SET run = 'theirs', machine = 'm'")

        with pytest.raises(LeaseLostError):
            await built(saver, lose).ainvoke({"items": []}, config, durability="sync")
        found = saver.get_tuple(on("t"))
        assert found and "word" not in found.checkpoint["channel_values"]
        await built(saver).ainvoke({"items": []}, on("other"), durability="sync")
    assert stored(path) == 3 + 6


def test_the_blocking_face_stores_at_once(tmp_path: Path) -> None:
    path, seen = tmp_path / "t.db", list[int]()

    def look(state: State) -> Any:
        seen.append(stored(path))
        return {"word": "looked"}

    with passing(path) as saver:
        graph = StateGraph(State).add_node("word", lambda state: {"word": "w"})
        graph.add_node("look", look).add_edge(START, "word").add_edge("word", "look")
        compiled: Any = graph.compile(checkpointer=saver)
        compiled.invoke({"items": []}, on("t"), durability="sync")
    assert seen == [3]
