"""Whole threads in a file: forks share rows, which stay until the last thread lets go of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.keeping import PAGE, thin
from loopwright.state.lease import Leases
from tests.support.graphs import on
from tests.support.savers import (
    Chat,
    asking,
    count,
    deltas,
    folding,
    grow,
    history,
    ours,
    size,
)

TABLES = ("checkpoints", "writes", "loopwright_branches", "loopwright_rows", "loopwright_values")


def echoing(saver: SqliteCheckpointer) -> Any:
    """A graph that answers with what it was told."""

    def echo(state: Chat) -> Any:
        return {"messages": [AIMessage(f"{state['messages'][-1].text}!", id=None)]}

    builder = StateGraph(Chat)
    builder.add_node("echo", echo)
    builder.add_edge(START, "echo")
    return builder.compile(checkpointer=saver)


def say(graph: Any, text: str, thread: str = "t") -> None:
    given = {"messages": [HumanMessage(text * 600)], "plan": {"steps": [text * 500]}}
    graph.invoke(given, on(thread), durability="sync")


def texts(graph: Any, thread: str = "t") -> list[str]:
    return [m.text.rstrip("!")[:1] for m in graph.get_state(on(thread)).values["messages"]]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteCheckpointer]:
    with ours(tmp_path / "threads.db") as saver:
        yield saver


def newest(saver: SqliteCheckpointer, thread: str) -> str:
    return next(saver.moments(thread)).id


def fork(saver: SqliteCheckpointer, source: str, target: str) -> None:
    assert saver.fork(source, newest(saver, source), target, {})


def counts(saver: SqliteCheckpointer) -> dict[str, int]:
    return {table: count(Path(saver.database.path), table) for table in TABLES}


def test_a_fork_stores_nothing_again_but_what_is_large_and_no_list(
    saver: SqliteCheckpointer,
) -> None:
    graph = echoing(saver)
    for text in "abc":
        say(graph, text)
    before = counts(saver)
    fork(saver, "t", "f")
    after = counts(saver)
    assert after["loopwright_rows"] == before["loopwright_rows"]
    assert after["checkpoints"] == before["checkpoints"] + 1
    say(graph, "d", "f")
    say(graph, "e")
    assert (texts(graph, "f"), texts(graph)) == ([*"aabbccdd"], [*"aabbccee"])
    assert counts(saver)["loopwright_rows"] == after["loopwright_rows"] + 4


def test_two_hundred_forks_cost_what_changes(saver: SqliteCheckpointer) -> None:
    graph = echoing(saver)
    for text in "abcdefghij" * 3:
        say(graph, text)
    path = Path(saver.database.path)
    sizes = []
    for number in range(200):
        if number % 100 == 0:
            saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes.append(size(path))
        source = f"f{number - 2}" if number % 2 == 0 and number else "t"  # half are forks of forks
        fork(saver, source, f"f{number}")
        say(graph, "x", f"f{number}")
    saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sizes.append(size(path))
    transcript = sum(len(m.text) for m in graph.get_state(on("t")).values["messages"])
    assert sizes[2] - sizes[1] < 1.3 * (sizes[1] - sizes[0])
    assert (sizes[2] - sizes[0]) / 200 < transcript / 3
    assert texts(graph, "f198")[-2:] == ["x", "x"]


@pytest.mark.parametrize("order", [("t", "f", "g"), ("g", "f", "t"), ("f", "t", "g")])
def test_shared_rows_stay_until_their_last_thread_is_gone(
    saver: SqliteCheckpointer, order: tuple[str, ...]
) -> None:
    graph = echoing(saver)
    say(graph, "a")
    say(graph, "b")
    fork(saver, "t", "f")
    say(graph, "c", "f")
    fork(saver, "f", "g")
    say(graph, "d", "g")
    say(graph, "e")
    expected = {thread: texts(graph, thread) for thread in "tfg"}
    for gone in order:
        saver.delete_thread(gone)
        del expected[gone]
        assert {thread: texts(graph, thread) for thread in expected} == expected
        owners = saver.database.connection.execute("SELECT thread FROM loopwright_branches")
        assert {owner for (owner,) in owners} <= set(expected)
    assert set(counts(saver).values()) == {0}


def test_rows_that_only_a_fork_kept_go_with_it(saver: SqliteCheckpointer) -> None:
    graph = echoing(saver)
    say(graph, "a")
    say(graph, "b")
    fork(saver, "t", "f")
    base = graph.get_state_history(on("t"))
    first = next(state for state in base if len(state.values.get("messages", ())) == 2)
    graph.update_state(first.config, {"messages": [HumanMessage("z" * 200)]})
    saver.prune(["t"])
    assert count(Path(saver.database.path), "loopwright_rows") == 2 + 2 + 1
    assert texts(graph, "f") == [*"aabb"]
    saver.delete_thread("f")
    assert count(Path(saver.database.path), "loopwright_rows") == 2 + 1
    assert texts(graph) == [*"aaz"]


def test_a_new_thread_under_a_deleted_name_has_nothing_of_the_old_one(
    saver: SqliteCheckpointer,
) -> None:
    graph = echoing(saver)
    say(graph, "a")
    fork(saver, "t", "f")
    saver.delete_thread("t")
    say(graph, "b")
    assert (texts(graph), texts(graph, "f")) == ([*"bb"], [*"aa"])
    saver.delete_thread("f")
    assert texts(graph) == [*"bb"]
    assert count(Path(saver.database.path), "loopwright_rows") == 2


def test_a_fork_is_no_part_of_the_run_that_stored_its_checkpoint(
    saver: SqliteCheckpointer,
) -> None:
    graph = echoing(saver)
    config = on("t", metadata={"run_id": "1"})
    graph.invoke({"messages": [HumanMessage("a")]}, config, durability="sync")
    fork(saver, "t", "f")
    saver.delete_for_runs(["1"])
    assert texts(graph, "f") == [*"aa"]
    assert not history(graph)


def test_a_fork_of_an_open_question_has_the_question_too(saver: SqliteCheckpointer) -> None:
    graph = asking(saver)
    graph.invoke({"messages": [HumanMessage("go", id="h")]}, on("t"), durability="sync")
    fork(saver, "t", "f")
    (mine,), (theirs,) = (graph.get_state(on(thread)).interrupts for thread in "tf")
    assert (mine.id, mine.value) == (theirs.id, theirs.value)


def test_a_thinned_thread_has_its_newest_checkpoints(saver: SqliteCheckpointer) -> None:
    graph = echoing(saver)
    for text in "abcd":
        say(graph, text)
    told = history(graph)
    saver.thin("t", len(told))
    assert history(graph) == told
    saver.thin("t", 3)
    assert history(graph) == told[:3]
    assert texts(graph) == [*"aabbccdd"]
    say(graph, "e")
    assert history(graph)[3:] == told[:3]


def test_a_thinned_thread_keeps_what_its_delta_channels_need(saver: SqliteCheckpointer) -> None:
    graph = deltas(saver)
    grow(graph)
    told = history(graph)
    saver.thin("t", 4)
    assert [item[0] for item in history(graph)] == [item[0] for item in told[:4]]
    grow(graph)
    saver.thin("t", 4)
    assert len(history(graph)) == 4


@pytest.mark.anyio
async def test_a_run_thins_its_own_thread_and_nothing_where_it_is_nested(
    saver: SqliteCheckpointer,
) -> None:
    graph = echoing(saver)
    for text in "ab":
        say(graph, text)
    leases, before = Leases(), len(history(graph))
    own = leases.claim("t")
    await thin(saver, own, None)
    await thin(saver, leases.claim("t", "inner"), 1)
    await thin(None, own, 1)
    assert len(history(graph)) == before
    await thin(saver, own, 1)
    assert len(history(graph)) == 1


def test_the_moments_of_a_long_past_are_read_in_pages(saver: SqliteCheckpointer) -> None:
    graph = echoing(saver)
    for number in range(PAGE // 2):
        say(graph, "ab"[number % 2])
    moments = iter(saver.moments("t"))
    first = next(moments)
    saver.prune(["t"])
    assert [moment.id for moment in moments] == []
    assert [moment.id for moment in saver.moments("t")] == [first.id]
    for _ in range(PAGE):
        say(graph, "c")
    ids = [moment.id for moment in saver.moments("t")]
    assert len(ids) == 1 + 3 * PAGE == len(set(ids))
    assert ids == sorted(ids, reverse=True)


def test_reclaimed_space_is_given_back(saver: SqliteCheckpointer) -> None:
    graph, path = echoing(saver), Path(saver.database.path)
    say(graph, "a", "kept")
    saver.reclaim()
    small = size(path)
    for _ in range(20):
        say(graph, "b")
    saver.delete_thread("t")
    saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert size(path) > 2 * small
    saver.reclaim()
    assert size(path) <= small + 4096
    assert texts(graph, "kept") == [*"aa"]


def test_writes_that_wait_for_their_checkpoint_stay_when_older_ones_are_dropped(
    tmp_path: Path,
) -> None:
    with folding(tmp_path / "threads.db") as saver:
        say(echoing(saver), "a")
        newest = saver.get_tuple(on("t"))
        assert newest is not None
        saver.put_writes(newest.config, [("messages", ["more"])], "task")
        saver.thin("t", 1)
        kept = saver.get_tuple(on("t"))
        assert kept is not None and kept.pending_writes == [("task", "messages", ["more"])]
