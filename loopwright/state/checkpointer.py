"""The checkpointer: LangGraph's SQLite saver on our database, from both faces.

What a checkpoint holds is LangGraph's; the connection and its errors live in `database`.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from loopwright.state.database import Database, translated


def _strict_serde() -> JsonPlusSerializer:
    """Only LangGraph's and langchain-core's safe types are revived, and nothing is unpickled."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class SqliteCheckpointer(SqliteSaver):
    """A saver for any LangGraph graph, sync and async, bound to no event loop.

    Async calls make one hop to the database's thread and are not cut short by a cancellation.
    Nothing stored is ever unpickled. Raises DatabaseError.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database.connection, serde=_strict_serde())
        self.database = database

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor under the database's lock; commits unless something raised."""
        with self.database.lock, translated(self.database.path):
            self.conn = self.database.connection
            self.setup()
            cursor = self.conn.cursor()
            try:
                yield cursor
                if transaction:
                    self.conn.commit()
            except BaseException:
                if transaction:
                    self.conn.rollback()
                raise
            finally:
                cursor.close()

    def thread_ids(self) -> list[str]:
        """The stored threads, the one written last first."""
        with self.cursor(transaction=False) as cursor:
            rows = cursor.execute(
                "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = ''"
                " GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC"
            )
            return [row[0] for row in rows]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.database.hop(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        def page() -> list[CheckpointTuple]:
            return [*self.list(config, filter=filter, before=before, limit=limit)]

        for item in await self.database.hop(page):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self.database.hop(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self.database.hop(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.database.hop(self.delete_thread, thread_id)
