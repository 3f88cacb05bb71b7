"""The saver under any LangGraph graph: both faces, strict reading, no lock left behind."""

import asyncio
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from loopwright.errors import DatabaseError
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.graphs import on


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
