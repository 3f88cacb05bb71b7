"""The saver under any LangGraph graph: what it stores, both faces, strict reading, no lock left.

That it stores the same as LangGraph's own is shown in `test_drop_in`.
"""

import asyncio
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from loopwright.errors import DatabaseError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.databases import held
from tests.support.graphs import on
from tests.support.savers import count, folding, ours, size


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def echo(state: Chat) -> dict[str, Any]:
    return {"messages": [AIMessage(f"echo {state['messages'][-1].text}")]}


def graph(checkpointer: SqliteCheckpointer) -> Any:
    builder = StateGraph(Chat)
    builder.add_node("echo", echo)
    builder.add_edge(START, "echo")
    builder.add_edge("echo", END)
    return builder.compile(checkpointer=checkpointer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def checkpointer(path: Path) -> Iterator[SqliteCheckpointer]:
    database = Database(path)
    yield SqliteCheckpointer(database)
    database.close()


def texts(snapshot: Any) -> list[str]:
    return [message.text for message in snapshot.values["messages"]]


def test_a_graph_goes_on_where_another_saver_on_the_file_stopped(path: Path) -> None:
    for word in ("one", "two"):
        database = Database(path)
        chat = graph(SqliteCheckpointer(database))
        chat.invoke({"messages": word}, on("t"))
        said = texts(chat.get_state(on("t")))
        database.close()
    assert said == ["one", "echo one", "two", "echo two"]


@pytest.mark.anyio
async def test_both_faces_read_what_either_wrote(checkpointer: SqliteCheckpointer) -> None:
    chat = graph(checkpointer)
    await chat.ainvoke({"messages": "one"}, on("t"))
    await asyncio.to_thread(chat.invoke, {"messages": "two"}, on("t"))
    assert texts(chat.get_state(on("t"))) == texts(await chat.aget_state(on("t")))
    sync = [s.config for s in chat.get_state_history(on("t"))]
    assert sync == [s.config async for s in chat.aget_state_history(on("t"))]
    assert len(sync) == 6
    assert [s.config async for s in chat.aget_state_history(on("t"), limit=2)] == sync[:2]


@pytest.mark.anyio
async def test_one_saver_serves_several_event_loops(checkpointer: SqliteCheckpointer) -> None:
    chat = graph(checkpointer)
    await chat.ainvoke({"messages": "one"}, on("t"))
    other = asyncio.to_thread(asyncio.run, chat.ainvoke({"messages": "two"}, on("t")))
    assert len((await other)["messages"]) == 4


def test_threads_are_listed_the_one_written_last_first(checkpointer: SqliteCheckpointer) -> None:
    chat = graph(checkpointer)
    assert checkpointer.thread_ids() == []
    for thread in ("a", "b", "c", "a"):
        chat.invoke({"messages": "hi"}, on(thread))
    assert checkpointer.thread_ids() == ["a", "c", "b"]


@pytest.mark.anyio
async def test_a_deleted_thread_is_gone(checkpointer: SqliteCheckpointer) -> None:
    chat = graph(checkpointer)
    for thread in ("a", "b"):
        await chat.ainvoke({"messages": "hi"}, on(thread))
    await checkpointer.adelete_thread("a")
    checkpointer.delete_thread("unknown")
    assert checkpointer.thread_ids() == ["b"]
    assert await checkpointer.aget_tuple(on("a")) is None


def test_messages_come_back_as_they_were_stored(checkpointer: SqliteCheckpointer) -> None:
    call = {"name": "t", "args": {"a": [1, None, "\u00e9"]}, "id": "c1"}
    messages: list[AnyMessage] = [
        HumanMessage(
            [{"type": "text", "text": "look"}, {"type": "image", "url": "data:x"}], id="u"
        ),
        AIMessage("", id="a", tool_calls=[call], response_metadata={"stop_reason": "tool_use"}),
        ToolMessage("no", id="r", tool_call_id="c1", status="error", artifact={"deep": [1]}),
    ]
    chat = graph(checkpointer)
    chat.update_state(on("t"), {"messages": messages}, as_node="echo")
    assert chat.get_state(on("t")).values["messages"] == messages


class Trap:
    """Unpickling one of these would run code."""

    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('unpickled')",))


def test_nothing_stored_is_ever_unpickled(path: Path, checkpointer: SqliteCheckpointer) -> None:
    graph(checkpointer).invoke({"messages": "hi"}, on("t"))
    with sqlite3.connect(path) as connection:
        update = "UPDATE checkpoints SET type = 'pickle', checkpoint = ?"
        connection.execute(update, (pickle.dumps(Trap()),))
    connection.close()
    with pytest.raises(NotImplementedError, match="pickle"):
        checkpointer.get_tuple(on("t"))


def test_what_has_no_safe_form_is_refused_not_pickled(checkpointer: SqliteCheckpointer) -> None:
    with pytest.raises(TypeError, match="Trap"):
        checkpointer.serde.dumps_typed({"value": Trap()})


def test_a_failing_statement_is_rolled_back(checkpointer: SqliteCheckpointer) -> None:
    graph(checkpointer).invoke({"messages": "hi"}, on("t"))
    with pytest.raises(DatabaseError, match=r"threads\.db"), checkpointer.cursor() as cursor:
        cursor.execute("DELETE FROM checkpoints")
        cursor.execute("SELECT nothing FROM nowhere")
    assert checkpointer.thread_ids() == ["t"]


def test_a_file_that_is_no_database_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("notes " * 100)
    with pytest.raises(DatabaseError, match="notes"):
        SqliteCheckpointer(Database(tmp_path / "notes"))


@pytest.mark.anyio
async def test_a_cancelled_write_leaves_no_lock_behind(
    path: Path, checkpointer: SqliteCheckpointer
) -> None:
    chat = graph(checkpointer)
    await chat.ainvoke({"messages": "hi"}, on("t"))
    config = (await chat.aget_state(on("t"))).config
    with held(checkpointer.database):
        for number in range(50):
            write = asyncio.ensure_future(
                checkpointer.aput_writes(config, [("messages", number)], f"task-{number}")
            )
            await asyncio.sleep(0)
            write.cancel()
            with pytest.raises(asyncio.CancelledError):
                await write
    await checkpointer.database.hop(lambda: None)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    count = other.execute("SELECT COUNT(*) FROM writes WHERE task_id LIKE 'task-%'").fetchone()
    other.execute("COMMIT")
    other.close()
    assert count == (50,)


def long(text: str) -> HumanMessage:
    return HumanMessage(text * 50, id=text)


def measured(saver: Any, path: Path, work: Any, times: int) -> tuple[int, int]:
    """How many bytes and rows the first and the second half of some work add."""
    sizes = []
    for number in range(times):
        if number in (0, times // 2):
            saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes.append((size(path), count(path, "loopwright_rows")))
        work(number)
    saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sizes.append((size(path), count(path, "loopwright_rows")))
    (bytes0, rows0), (bytes1, rows1), (bytes2, rows2) = sizes
    assert rows2 - rows1 == rows1 - rows0
    return bytes1 - bytes0, bytes2 - bytes1


@pytest.mark.parametrize("opened", [ours, folding])
@pytest.mark.parametrize("way", ["run", "update", "fork", "rewrite", "copy"])
def test_what_is_stored_grows_with_what_is_new(path: Path, opened: Any, way: str) -> None:
    with opened(path) as saver:
        chat = graph(saver)
        begin = chat.update_state(on("t"), {"messages": [long(f"{n} ") for n in range(60)]})
        old = chat.update_state(begin, {"messages": [long("one more")]})

        def work(number: int) -> None:
            new = long(f"new {number}")
            if way == "run":
                chat.invoke({"messages": [new]}, on("t"), durability="sync")
            elif way == "update":
                chat.update_state(on("t"), {"messages": [new]})
            elif way == "fork":
                chat.update_state(old, {"messages": [new]})
            elif way == "rewrite":
                last = chat.get_state(on("t")).values["messages"][-1]
                changes = [HumanMessage("rewritten " * 50, id=last.id), new]
                chat.update_state(on("t"), {"messages": changes})
            else:
                saver.copy_thread("t", str(number))

        first, second = measured(saver, path, work, 80)
        assert second < 1.2 * first + 16 * 4096
        assert (count(path, "loopwright_rows") > 61) is (way != "copy")  # a copy shares them all


@pytest.mark.parametrize("opened", [ours, folding])
def test_an_unchanged_state_costs_little(path: Path, opened: Any) -> None:
    with opened(path) as saver:
        chat = graph(saver)
        chat.update_state(on("t"), {"messages": [long(f"{n} ") for n in range(60)]})
        before = size(path), count(path, "loopwright_rows")
        for _ in range(50):
            chat.update_state(on("t"), None, as_node="echo")
        saver.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert count(path, "loopwright_rows") == before[1]
        assert size(path) < before[0] + 50 * 1024


@pytest.mark.parametrize("fresh", [False, True])
def test_a_message_edited_in_place_is_stored(path: Path, fresh: bool) -> None:
    class Edited(Chat):
        note: str

    def edit(state: Edited) -> dict[str, Any]:
        state["messages"][-1].content = "edited"
        return {"note": "done"}

    def unread(state: Edited) -> dict[str, Any]:
        return {"note": "nothing"}

    builder = StateGraph(Edited)
    builder.add_node("edit", edit)
    builder.add_node("unread", unread)
    builder.add_edge(START, "edit")
    builder.add_edge("edit", "unread")
    with ours(path) as saver:
        chat = builder.compile(checkpointer=saver)
        given: Any = {"messages": [*(long(f"{n} ") for n in range(9)), HumanMessage("plain")]}
        if fresh:
            chat.update_state(on("t"), given, as_node="unread")
            given = {"messages": []}
        chat.invoke(given, on("t"), durability="sync")
    with ours(path) as saver:
        snapshot = builder.compile(checkpointer=saver).get_state(on("t"))
        assert texts(snapshot)[-2:] == [long("8 ").text, "edited"]


def test_an_old_message_edited_in_place_is_stored_on_request(path: Path) -> None:
    def edit(state: Chat) -> dict[str, Any]:
        state["messages"][0].content = "edited"
        return {}

    builder = StateGraph(Chat)
    builder.add_node("edit", edit)
    builder.add_edge(START, "edit")
    database = Database(path)
    chat = builder.compile(checkpointer=SqliteCheckpointer(database, compared=None))
    chat.invoke({"messages": [long(f"{n} ") for n in range(9)]}, on("t"), durability="sync")
    assert texts(chat.get_state(on("t")))[:2] == ["edited", long("1 ").text]
    database.close()


def test_every_read_gives_new_objects(checkpointer: SqliteCheckpointer) -> None:
    chat = graph(checkpointer)
    chat.update_state(on("t"), {"messages": [long(f"{n} ") for n in range(9)]})
    first, second = (chat.get_state(on("t")).values["messages"] for _ in range(2))
    assert first == second
    for message in first:
        message.content = "edited by a reader"
    assert chat.get_state(on("t")).values["messages"] == second
    chat.update_state(on("t"), {"messages": [long("more")]})
    assert chat.get_state(on("t")).values["messages"] == [*second, long("more")]


@pytest.mark.anyio
@pytest.mark.parametrize(("opened", "commits"), [(ours, 5), (folding, 3)])
async def test_a_checkpoint_is_one_commit_and_no_hop(
    path: Path, opened: Any, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has three checkpoints, and two tasks whose writes are folded into them or not."""
    with opened(path) as saver:
        chat = graph(saver)
        await chat.ainvoke({"messages": [long("first")]}, on("t"), durability="sync")
        hops, said = [0], list[str]()
        hop = saver.database.hop

        def counted(*args: Any, **kwargs: Any) -> Any:
            hops[0] += 1
            return hop(*args, **kwargs)

        monkeypatch.setattr(saver.database, "hop", counted)
        saver.database.connection.set_trace_callback(said.append)
        await chat.ainvoke({"messages": [long("second")]}, on("t"), durability="sync")
        saver.database.connection.set_trace_callback(None)
        assert said.count("BEGIN IMMEDIATE") == commits
        assert said.count("COMMIT") == commits + 2  # is there a thread? It is read once,
        assert hops[0] == 1  # and only that may take its time


def test_a_checkpoint_that_cannot_be_stored_leaves_no_trace(
    path: Path, checkpointer: SqliteCheckpointer
) -> None:
    chat = graph(checkpointer)
    chat.update_state(on("t"), {"messages": [long(f"{n} ") for n in range(9)]})
    rows = count(path, "loopwright_rows")
    held: Any = checkpointer.get_tuple(on("t"))
    values = held.checkpoint["channel_values"]
    spoilt: Any = {**held.checkpoint, "id": "z"}
    spoilt["channel_values"] = {"messages": [*values["messages"], long("new")], "bad": Trap()}
    config = {"configurable": {**held.config["configurable"]}}
    with pytest.raises(TypeError, match="Trap"):
        checkpointer.put(config, spoilt, {}, {"messages": 99, "bad": 99})  # type: ignore[arg-type]
    assert count(path, "loopwright_rows") == rows
    chat.update_state(on("t"), {"messages": [long("new")]})
    assert len(texts(chat.get_state(on("t")))) == 10


def test_a_saver_for_more_types_shares_the_file(checkpointer: SqliteCheckpointer) -> None:
    other = checkpointer.with_allowlist([("fractions", "Fraction")])
    assert other is not checkpointer and other.serde is not checkpointer.serde
    for number, saver in enumerate([checkpointer, other, checkpointer]):
        graph(saver).update_state(on("t"), {"messages": [long(f"{number} ")]})  # type: ignore[arg-type]
    assert len(texts(graph(checkpointer).get_state(on("t")))) == 3


def test_threads_and_history_need_no_log(checkpointer: SqliteCheckpointer) -> None:
    assert checkpointer.get_tuple(on("t")) is None
    assert [*checkpointer.list(on("t"))] == []
    assert checkpointer.get_delta_channel_history(config=on("t"), channels=["a"]) == {
        "a": {"writes": []}
    }
    assert checkpointer.get_delta_channel_history(config=on("t"), channels=[]) == {}


def test_a_value_that_is_said_to_be_new_is_stored(checkpointer: SqliteCheckpointer) -> None:
    """Also under the version that the parent's has, as a saver's user may number them."""
    parent = None
    for id, value in ("1", "old"), ("2", "new"):
        config = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}
        checkpoint: Any = {
            **empty_checkpoint(),
            "id": id,
            "channel_values": {"a": value, "b": value},
            "channel_versions": {"a": 1, "b": 1},
        }
        checkpointer.put({"configurable": config}, checkpoint, {}, {"a": 1})
        parent = id
    found: Any = checkpointer.get_tuple(on("t"))
    assert found.checkpoint["channel_values"] == {"a": "new", "b": "old"}
