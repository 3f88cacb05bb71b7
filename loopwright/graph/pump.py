"""A run's own task: it goes on by itself, and its consumer takes the chunks when it likes.

What the chunks are is the entrance's; nothing here knows runs.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from langsmith import tracing_context

_END = object()


class Pump:
    """Iterates a graph's stream in a task of its own, with LangSmith tracing off unless `tracing`.

    A consumer that is cancelled or leaves cancels the task exactly once. Cancelled again while it
    cleans up, as an anyio scope does (any server-sent stream), LangGraph would leave its nodes
    running. A consumer that is slow does not hold up the run. `settle` is awaited where the run is
    cut off: LangGraph does not wait for what a cancelled node writes last.
    """

    def __init__(
        self,
        source: AsyncIterator[Any],
        tracing: bool,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._chunks: asyncio.Queue[Any] = asyncio.Queue()
        self._settle = settle
        self._task = asyncio.create_task(self._iterate(source, tracing))
        self._task.add_done_callback(self._ended)

    async def chunks(self) -> AsyncGenerator[Any, None]:
        """The chunks as they come, then what the source raised. Close it to end the task."""
        try:
            while (chunk := await self._chunks.get()) is not _END:
                yield chunk
            self._task.result()
        finally:
            if not self._task.cancelling():  # the loop may have cancelled it: it closes
                self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, whatever became of it."""
        return self._task.done()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back when the task is over: at once if it is."""
        if self._task.done():
            callback()
        else:
            self._task.add_done_callback(lambda _: callback())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._chunks.put_nowait(_END)
        if not task.cancelled():
            task.exception()  # a consumer that has left is not told, and neither is asyncio's log

    async def _iterate(self, source: AsyncIterator[Any], tracing: bool) -> None:
        # The switch is this task's own, so the consumer's tracing stays as it is.
        try:
            with tracing_context(enabled=None if tracing else False):
                async for chunk in source:
                    self._chunks.put_nowait(chunk)
        except BaseException:
            if self._settle is not None:
                await self._settle()
            raise
