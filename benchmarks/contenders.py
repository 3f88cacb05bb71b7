"""The loops that are compared: ours, other people's agents, and the least that the work needs.

Each is opened on a file and can then run one message to its end and read the thread back.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import orjson
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks import peers
from benchmarks.work import Work
from loopwright import Agent, Limits, Settings
from loopwright.events import AnyEvent
from loopwright.tools.functions import function_tool


@dataclass(frozen=True)
class Loop:
    """An opened contender. `load` gives the number of messages that it reads back, cold."""

    run: Callable[[], Awaitable[None]]
    load: Callable[[], Awaitable[int]]


Contender = Callable[[Work, Path], AbstractAsyncContextManager[Loop]]


def our_agent(
    work: Work, path: Path, effects: Literal["none", "unsafe"] = "none", thread: str = "t"
) -> Agent:
    """Our agent with default settings; only the turns that the work needs are allowed."""
    settings = Settings(limits=Limits(turns=work.turns + 1))
    tool = function_tool(work.noop, effects=effects)
    return Agent(work.model, [tool], database=path, thread=thread, settings=settings)


@asynccontextmanager
async def ours(
    work: Work, path: Path, effects: Literal["none", "unsafe"] = "none"
) -> AsyncIterator[Loop]:
    """Our agent with one listener."""

    async def hear(event: AnyEvent) -> None:
        pass

    async with our_agent(work, path, effects) as agent:
        agent.subscribe(hear)

        async def run() -> None:
            result = await agent.prompt("go")
            assert (result.status, result.turns) == ("completed", work.turns + 1)

        yield Loop(run, partial(peers.load, agent.graph))


def _peer(name: str) -> Contender:
    @asynccontextmanager
    async def opened(work: Work, path: Path) -> AsyncIterator[Loop]:
        async with peers.stock_saver(path) as saver:
            graph = peers.PEERS[name](work, saver)
            yield Loop(partial(peers.run, graph), partial(peers.load, graph))

    return opened


@asynccontextmanager
async def floor(work: Work, path: Path) -> AsyncIterator[Loop]:
    """Ask, call, append: what a loop over a langchain model costs that keeps nothing."""
    messages: list[BaseMessage] = []
    yield Loop(partial(_plain_loop, work, messages, messages.append), _nothing)


@asynccontextmanager
async def floor_sqlite(work: Work, path: Path) -> AsyncIterator[Loop]:
    """The floor with one INSERT and commit per message."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_TABLE)
        messages: list[BaseMessage] = []

        def keep(message: BaseMessage) -> None:
            row = ("t", len(messages), _encode(message))
            connection.execute("BEGIN")
            connection.execute("INSERT INTO msg VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")
            messages.append(message)

        async def load() -> int:
            return len([_decode(body) for (body,) in connection.execute(_READ)])

        yield Loop(partial(_plain_loop, work, messages, keep), load)


_TABLE = (
    "CREATE TABLE IF NOT EXISTS msg"
    " (tid TEXT, seq INTEGER, body BLOB, PRIMARY KEY (tid, seq)) WITHOUT ROWID"
)
_READ = "SELECT body FROM msg WHERE tid = 't' ORDER BY seq"


async def _plain_loop(
    work: Work, messages: list[BaseMessage], keep: Callable[[BaseMessage], None]
) -> None:
    tool = work.langchain_tool()
    keep(HumanMessage("go"))
    while True:
        answer: Any = await work.model.ainvoke(messages)
        keep(answer)
        if not answer.tool_calls:
            return
        for call in answer.tool_calls:
            content = await tool.ainvoke(call["args"])
            keep(ToolMessage(content, tool_call_id=call["id"], name=call["name"]))


async def _nothing() -> int:
    return 0


def _encode(message: BaseMessage) -> bytes:
    """The fields that a transcript needs, as JSON."""
    row: dict[str, Any] = {"t": message.type, "c": message.content, "id": message.id}
    if isinstance(message, AIMessage):
        row |= {"tc": message.tool_calls, "u": message.usage_metadata}
    if isinstance(message, ToolMessage):
        row |= {"tid": message.tool_call_id, "n": message.name, "s": message.status}
    return orjson.dumps(row)


def _decode(body: bytes) -> BaseMessage:
    row = orjson.loads(body)
    content, id = row["c"], row["id"]
    if row["t"] == "ai":
        return AIMessage(content, id=id, tool_calls=row["tc"], usage_metadata=row["u"])
    if row["t"] == "tool":
        return ToolMessage(content, id=id, tool_call_id=row["tid"], name=row["n"], status=row["s"])
    return HumanMessage(content, id=id)


CONTENDERS: dict[str, Contender] = {
    "ours": ours,
    "ours_unsafe": partial(ours, effects="unsafe"),
    **{name: _peer(name) for name in peers.PEERS},
    "floor": floor,
    "floor_sqlite": floor_sqlite,
}
