"""The loops that are compared: ours, and plain ones that show what the work itself costs.

Each runs one message to its end, with the file at `database` if it keeps anything.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from benchmarks.work import TurnModel, noop
from loopwright import Agent, Limits, Settings

Contender = Callable[[TurnModel, Path], Awaitable[None]]


async def loopwright(model: TurnModel, database: Path) -> None:
    """Our agent with one listener, its transcript in SQLite."""
    settings = Settings(limits=Limits(turns=model.turns + 1))
    async with Agent(model, [noop], database=database, settings=settings) as agent:
        agent.subscribe(lambda event: None)
        result = await agent.prompt("go")
        assert (result.status, result.turns) == ("completed", model.turns + 1)


async def floor(
    model: TurnModel, database: Path, keep: Callable[[BaseMessage], None] | None = None
) -> None:
    """The least a loop over a langchain model can be: ask, call, append."""
    tool = StructuredTool.from_function(coroutine=noop)
    messages: list[BaseMessage] = []

    def append(message: BaseMessage) -> None:
        messages.append(message)
        if keep is not None:
            keep(message)

    append(HumanMessage("go"))
    while True:
        answer = await model.ainvoke(messages)
        append(answer)
        assert isinstance(answer, AIMessage)
        if not answer.tool_calls:
            return
        for call in answer.tool_calls:
            content = await tool.ainvoke(call["args"])
            append(ToolMessage(content, tool_call_id=call["id"]))


async def floor_sqlite(model: TurnModel, database: Path) -> None:
    """The floor with one INSERT and commit per message."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE messages (position INTEGER PRIMARY KEY, body TEXT)")

        def keep(message: BaseMessage) -> None:
            connection.execute("INSERT INTO messages (body) VALUES (?)", (dumps(message),))
            connection.commit()

        await floor(model, database, keep)


CONTENDERS: dict[str, Contender] = {
    "loopwright": loopwright,
    "floor": floor,
    "floor_sqlite": floor_sqlite,
}
