"""A run that was started and goes on by itself: awaited for its result, iterated for its events.

It drains the graph's stream in a task of its own and hands out copies, so that no consumer can
slow or cancel the run by reading slowly or leaving (design.md §7).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Generic

from langchain_core.runnables.config import var_child_runnable_config
from typing_extensions import TypeVar

from loopwright.background import running_loop
from loopwright.emitter import Sink
from loopwright.errors import NestedCallError, StateError
from loopwright.events import AgentEnd, AnyEvent
from loopwright.graph.entrance import AgentGraph
from loopwright.graph.guard import RUN_KEY
from loopwright.outcome import RunResult, result_of
from loopwright.runs import Run

T = TypeVar("T", default=Any)


class Ongoing(Generic[T]):
    """Something that was asked for and goes on. Await it for the RunResult; iterate it for the
    events.

    Both raise what kept the run from beginning (ConfigurationError, ContinuationError, InputError,
    BusyThreadError for a run in another process), and LeaseLostError. Every iteration sees all
    events from the first. Cancelling whoever awaits it cancels the run.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, RunResult[T]]]) -> None:
        """Must be called in an event loop."""
        self._events: list[AnyEvent] = []
        self._more = asyncio.Event()
        self._settled: Future[None] = Future()
        self._task = asyncio.get_running_loop().create_task(work())
        self._task.add_done_callback(self._ended)

    def __await__(self) -> Generator[Any, None, RunResult[T]]:
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

    @property
    def has_ended(self) -> bool:
        """Whether the run has told its end; False while it goes on, and if it raised instead."""
        return bool(self._events) and isinstance(self._events[-1], AgentEnd)

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

    def _take(self, event: AnyEvent) -> None:
        self._events.append(event)
        self._more.set()

    def _over(self) -> None:
        """What is done once when it is over, before anybody hears of that."""

    def _ended(self, task: "asyncio.Task[RunResult[T]]") -> None:
        self._over()  # a task that was cancelled before its first step never came to its `finally`
        self._more.set()
        self._settled.set_result(None)
        if not task.cancelled():
            task.exception()  # reported to whoever awaits or iterates, not to asyncio's log


class OngoingRun(Ongoing[T]):
    """A run that has claimed its thread in this process."""

    def __init__(
        self, graph: AgentGraph, run: Run, given: Any, settle: Callable[[], None] = lambda: None
    ) -> None:
        """Must be called in an event loop. `settle` is called once when the run is over."""
        self.run = run
        self.follower: Sink = lambda event: None
        """Hears every event, too."""

        self._settle = settle
        super().__init__(lambda: self._drain(graph, given))

    async def settled(self) -> None:
        await super().settled()
        await self.run.lease.released()

    async def _drain(self, graph: AgentGraph, given: Any) -> RunResult[T]:
        # A run inside another graph's tool is a run of its own, not a subgraph of that graph.
        var_child_runnable_config.set(None)
        config: Any = {"configurable": {"thread_id": self.run.thread, RUN_KEY: self.run}}
        self.run.sink = self._take
        try:
            async for _ in graph.astream(given, config, stream_mode=[]):
                pass  # the run tells its events; LangGraph's own streams are not asked for
        finally:
            self._over()
        end = self._events[-1] if self._events else None
        if not isinstance(end, AgentEnd):
            raise StateError(
                f"run {self.run.id} of thread {self.run.thread!r} ended without a word"
            )
        settings = self.run.settings
        typed = end.output
        if typed is not None and settings.output is not None:
            typed = self.run.output().load(typed)
        return result_of(end, typed)

    def _take(self, event: AnyEvent) -> None:
        super()._take(event)
        self.follower(event)

    def _over(self) -> None:
        settle, self._settle = self._settle, lambda: None
        settle()
        if not self.run.entered:
            self.run.lease.release()
