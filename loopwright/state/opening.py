"""How a saver comes to its file, and lets go of it: by a path or an open database, as a context.

What is stored in the file is said in `checkpointer`; its async calls are in `hopping`.
"""

import asyncio
from pathlib import Path
from typing import Any, Self

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from loopwright.state.connecting import MEMORY
from loopwright.state.database import Database


def strict_serializer() -> JsonPlusSerializer:
    """Only LangGraph's and langchain-core's safe types are revived, and nothing is unpickled."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class OpenedSaver(SqliteSaver):
    """A saver on the file at a path, in memory (None), or on a database that is open already.

    Use it in `with` or `async with`, or call `close` or `aclose`; closing commits what waits.
    """

    def __init__(self, database: Database | str | Path | None = None) -> None:
        self.database = database if isinstance(database, Database) else Database(database)
        super().__init__(self.database.connection, serde=strict_serializer())

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Any:
        """A saver under the name that LangGraph's savers have for it, for both kinds of `with`."""
        return cls(None if conn_string == MEMORY else conn_string)

    def close(self) -> None:
        """Finish what is under way and close the file. May be called twice."""
        self.database.close()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await asyncio.to_thread(self.database.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
