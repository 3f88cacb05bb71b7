"""Graphs of every kind that a saver may meet, and what can be told of a thread apart from its ids.

The same graphs are run under our saver and under LangGraph's own, and read back elsewhere.
"""

import operator
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.topic import Topic
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, Send, interrupt
from typing_extensions import TypedDict

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.graphs import on

Saver = BaseCheckpointSaver[Any]
Opener = Callable[[Path], Any]


@contextmanager
def ours(path: Path) -> Iterator[SqliteCheckpointer]:
    """Our saver on a file."""
    database = Database(path)
    try:
        yield SqliteCheckpointer(database)
    finally:
        database.close()


@contextmanager
def folding(path: Path) -> Iterator[SqliteCheckpointer]:
    """Our saver, with the writes of a task committed with the checkpoint they lead to."""
    database = Database(path)
    try:
        yield SqliteCheckpointer(database, fold_writes=True)
    finally:
        database.close()


@contextmanager
def stock(path: Path) -> Iterator[SqliteSaver]:
    """LangGraph's own saver on a file."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


def appended(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """A reducer of a DeltaChannel."""
    return [*state, *(item for write in writes for item in write)]


class Chat(TypedDict, total=False):
    """The state of an agent that calls tools."""

    messages: Annotated[list[AnyMessage], add_messages]
    plan: dict[str, Any]


def chat(saver: Saver) -> Any:
    """A loop of a model and its tools, three turns a run; the model changes an old message too."""

    def model(state: Chat) -> Chat:
        messages = state["messages"]
        number = len(messages)
        if isinstance(messages[-1], HumanMessage) and number > 1:
            gone: Any = RemoveMessage(id=str(messages[0].id))
            return {"messages": [gone, _call(number)]}
        asked = sum(isinstance(message, ToolMessage) for message in messages[-6:])
        return {"messages": [_call(number) if asked < 3 else AIMessage("done", id=f"a{number}")]}

    def tools(state: Chat) -> Chat:
        call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]
        result = ToolMessage("r" * 300, tool_call_id=call["id"], id=f"t{len(state['messages'])}")
        return {"messages": [result], "plan": {"steps": ["x" * 700, call["id"]]}}

    def more(state: Chat) -> str:
        return "tools" if state["messages"][-1].tool_calls else END  # type: ignore[union-attr]

    builder = StateGraph(Chat)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", more, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def _call(number: int) -> AIMessage:
    call = {"name": "look", "args": {"at": [number, None]}, "id": f"c{number}"}
    return AIMessage("\u00e9", id=f"a{number}", tool_calls=[call])


class Fan(TypedDict, total=False):
    """The state of a graph with siblings."""

    items: list[int]
    seen: Annotated[list[int], operator.add]
    bag: Annotated[list[str], Topic(str, True)]
    once: Annotated[list[str], Topic(str)]


def fan(saver: Saver) -> Any:
    """Siblings that each get a part, topics, and a subgraph behind them."""

    def spread(state: Fan) -> list[Send]:
        return [Send("part", {"item": item}) for item in state["items"]]

    def part(state: Any) -> dict[str, Any]:
        text = f"item {state['item']} " * 20
        return {"seen": [state["item"]], "bag": [text, text], "once": [text]}

    inner = StateGraph(Fan)
    inner.add_node("double", lambda state: {"seen": [2 * item for item in state["items"]]})
    inner.add_edge(START, "double")
    builder = StateGraph(Fan)
    builder.add_node("part", part)
    builder.add_node("inner", inner.compile(checkpointer=True))
    builder.add_conditional_edges(START, spread, ["part"])
    builder.add_edge("part", "inner")
    return builder.compile(checkpointer=saver)


class Deltas(TypedDict, total=False):
    """State that is rebuilt from old writes."""

    log: Annotated[list[str], DeltaChannel(appended, list, snapshot_frequency=4)]
    rare: Annotated[list[str], DeltaChannel(appended, list)]
    count: int


def deltas(saver: Saver) -> Any:
    """A loop over DeltaChannels, one of them hardly ever written; each run starts it over."""

    def step(state: Deltas) -> dict[str, Any]:
        count = state.get("count", 0) + 1
        wrote: dict[str, Any] = {"log": [f"line {count} " * 30], "count": count}
        if count == 2:
            wrote["rare"] = ["once"]
        if count == 17:
            wrote["log"] = Overwrite(["afresh"])
        return wrote

    builder = StateGraph(Deltas)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda s: "step" if s["count"] % 7 else END)
    return builder.compile(checkpointer=saver)


def asking(saver: Saver) -> Any:
    """A graph that asks its user in the middle."""

    def ask(state: Chat) -> Chat:
        answer = interrupt({"question": "really?"})
        return {"messages": [AIMessage(str(answer), id=f"a{len(state['messages'])}")]}

    builder = StateGraph(Chat)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


def talk(graph: Any, thread: str = "t") -> None:
    """Two runs of the chat."""
    for number in range(2):
        graph.invoke(
            {"messages": [HumanMessage("go", id=f"h{number}")]}, on(thread), durability="sync"
        )


def spread(graph: Any, thread: str = "t") -> None:
    """Two runs of the fan."""
    for items in ([3, 1, 2], [5]):
        graph.invoke({"items": items}, on(thread), durability="sync")


def grow(graph: Any, thread: str = "t") -> None:
    """Three runs of the deltas, and an edit from outside."""
    for _ in range(3):
        graph.invoke({"log": ["begin"]}, on(thread), durability="sync")
    graph.update_state(on(thread), {"log": ["edited"]})


def confirm(graph: Any, thread: str = "t") -> None:
    """A question answered, and one left open."""
    graph.invoke({"messages": [HumanMessage("go", id="h")]}, on(thread), durability="sync")
    graph.invoke(Command(resume="yes"), on(thread), durability="sync")
    graph.invoke({"messages": [HumanMessage("again", id="h2")]}, on(thread), durability="sync")


KINDS: dict[str, tuple[Callable[[Saver], Any], Callable[..., None]]] = {
    "chat": (chat, talk),
    "fan": (fan, spread),
    "deltas": (deltas, grow),
    "asking": (asking, confirm),
}
"""Each kind of graph, and what is done with it."""


def told(snapshot: Any) -> Any:
    """A snapshot without its ids and times."""
    tasks = [
        (task.name, task.result, [asked.value for asked in task.interrupts], str(task.error))
        for task in snapshot.tasks
    ]
    values = {
        name: sorted(map(str, v)) if name == "bag" else v for name, v in snapshot.values.items()
    }
    metadata = {key: snapshot.metadata[key] for key in ("source", "step")}
    return values, snapshot.next, metadata, tasks


def history(graph: Any, thread: str = "t") -> list[Any]:
    """All that is told of a thread, the newest first."""
    return [told(snapshot) for snapshot in graph.get_state_history(on(thread))]


def size(path: Path) -> int:
    """The bytes of a database, with its log."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def count(path: Path, table: str) -> int:
    """The rows of a table."""
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)
