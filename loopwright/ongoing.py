"""A run that was started and goes on by itself: awaited for its result, iterated for its events.

It drains the graph's stream in a task of its own and hands out copies, so that no consumer can
slow or cancel the run by reading slowly or leaving (design.md §7).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future
from typing import Any, cast

from langchain_core.runnables.config import var_child_runnable_config

from loopwright.background import running_loop
from loopwright.errors import NestedCallError, StateError
from loopwright.events import AgentEnd, AnyEvent, Event
from loopwright.graph.entrance import AgentGraph
from loopwright.graph.guard import RUN_KEY
from loopwright.outcome import RunResult, result_of
from loopwright.runs import Run


class Ongoing:
    """A run that is going on. Await it for the RunResult; iterate it for the events.

    Both raise what kept the run from beginning: ConfigurationError, ContinuationError, InputError.
    Every iteration sees all events from the first. Cancelling whoever awaits it cancels the run.
    """

    def __init__(
        self, graph: AgentGraph, run: Run, given: Any, settle: Callable[[], None] = lambda: None
    ) -> None:
        """Must be called in an event loop. `settle` is called once when the run is over."""
        self.run = run
        self._settle = settle
        self._events: list[AnyEvent] = []
        self._more = asyncio.Event()
        self._settled: Future[None] = Future()
        self._task = asyncio.get_running_loop().create_task(self._drain(graph, given))
        self._task.add_done_callback(self._ended)

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._task.__await__()

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        seen = 0
        while True:
            while seen < len(self._events):
                yield self._events[seen]
                seen += 1
            if self._task.done():
                break
            self._more.clear()
            await self._more.wait()
        self._task.result()

    def refuse_blocking(self) -> None:
        """Raise NestedCallError in the event loop that the run goes on in."""
        if running_loop() is self._task.get_loop():
            raise NestedCallError(
                "close() would block the event loop of a run that it waits for: "
                "use `await agent.aclose()`, or `async with`"
            )

    async def settled(self) -> None:
        """Return when the run is over, in any event loop; never raises what became of it."""
        await asyncio.shield(asyncio.wrap_future(self._settled))

    async def _drain(self, graph: AgentGraph, given: Any) -> RunResult:
        # A run inside another graph's tool is a run of its own, not a subgraph of that graph.
        var_child_runnable_config.set(None)
        config: Any = {"configurable": {"thread_id": self.run.thread, RUN_KEY: self.run}}
        end: AgentEnd | None = None
        try:
            async for event in graph.astream(given, config, stream_mode="custom"):
                if not isinstance(event, Event):
                    continue  # a langchain tool wrote something of its own on the stream
                self._events.append(cast(AnyEvent, event))
                self._more.set()
                if isinstance(event, AgentEnd):
                    end = event
        finally:
            self._over()
        if end is None:
            raise StateError(
                f"run {self.run.id} of thread {self.run.thread!r} ended without a word"
            )
        return result_of(end)

    def _over(self) -> None:
        settle, self._settle = self._settle, lambda: None
        settle()

    def _ended(self, task: "asyncio.Task[RunResult]") -> None:
        self._over()  # a task that was cancelled before its first step never came to its `finally`
        self._more.set()
        self._settled.set_result(None)
        if not task.cancelled():
            task.exception()  # reported to whoever awaits or iterates, not to asyncio's log
