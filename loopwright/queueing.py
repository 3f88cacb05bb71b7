"""A prompt for a thread that may be busy: it runs when the thread is free, else it is queued.

What becomes of a queued message is the run's that delivers it; the queues are in `queues`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, get_args

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict, TypeVar

from loopwright.errors import BusyThreadError, ConfigurationError
from loopwright.graph.entrance import AgentGraph
from loopwright.ongoing import Ongoing, OngoingRun
from loopwright.outcome import RunResult, queued_result
from loopwright.queues import enqueue
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.schema import Decision
from loopwright.state.sqlite_log import SqliteLog
from loopwright.structured import OutputKind

T = TypeVar("T", default=Any)
WhenBusy = Literal["error", "follow_up"]
"""What becomes of a prompt while another run of its thread goes on."""


class PromptOptions(TypedDict, total=False):
    """What may be said with a prompt; see `Agent.prompt`."""

    thread: str | None
    images: Sequence[Any]
    when_busy: WhenBusy
    output: OutputKind[Any] | None


RETRY = 0.05
"""Seconds until a thread is tried again whose run may be at its end."""

_POLLS_LATER = {"opening", "opening_polled", "turn", "compact", "tools", "again"}
"""Decisions behind which a run that ends by itself asks for follow-ups at least once more."""


def begun(
    when_busy: WhenBusy,
    start: Callable[[], OngoingRun[T]],
    queue: Callable[[], Awaitable[RunResult[T] | None]],
) -> Ongoing[T]:
    """Start a run; a busy thread is a BusyThreadError, or the prompt is queued behind its run."""
    if when_busy not in get_args(WhenBusy):
        known = " or ".join(get_args(WhenBusy))
        raise ConfigurationError(f"when_busy is {when_busy!r}: use {known}", field="when_busy")
    return start() if when_busy == "error" else Queueing(start, queue)


class Queueing(Ongoing[T]):
    """A prompt that waits for nothing: it runs, or it is queued and that is its result.

    `start` claims the thread or raises BusyThreadError, `queue` gives the result of a prompt that
    was queued. Neither happens only at the very end of another run, which takes no more messages:
    then both are tried again until it is over. So a message is run here or by the other run, never
    by both, and never left behind by a run that ends well.
    """

    def __init__(
        self,
        start: Callable[[], OngoingRun[T]],
        queue: Callable[[], Awaitable[RunResult[T] | None]],
    ) -> None:
        """A free thread is claimed before this returns. Must be called in an event loop."""
        self._start, self._queue = start, queue
        first = self._claimed()
        super().__init__(lambda: self._work(first))

    def _claimed(self) -> OngoingRun[T] | None:
        try:
            run = self._start()
        except BusyThreadError:
            return None
        run.follower = self._take
        return run

    async def _work(self, run: OngoingRun[T] | None) -> RunResult[T]:
        while True:
            try:
                if run is not None:
                    return await run
            except BusyThreadError:
                pass  # of another process
            result = await self._queue()
            if result is not None:
                return result
            await asyncio.sleep(RETRY)
            run = self._claimed()


async def queue_behind(
    graph: AgentGraph, thread: str, messages: Sequence[AnyMessage]
) -> RunResult | None:
    """Queue messages as follow-ups of the run that goes on; None if that may end without them.

    None, too, if messages and checkpoints are not in one database of ours: then nobody could tell.
    Raises InputError for what a queue does not take.
    """
    saver, log = graph.checkpointer, graph.dependencies.log
    if not isinstance(saver, SqliteCheckpointer) or not isinstance(log, SqliteLog):
        return None
    if saver.database is not log.database:
        return None
    config: RunnableConfig = {"configurable": {"thread_id": thread}}

    def queue() -> RunResult | None:
        # One transaction: the run stores nothing between what is seen of it and the message.
        with saver.transaction():
            seen = graph.get_state(config)
            if not (saver.leases.is_held(thread) and _polls_later(seen)):
                return None
            enqueue(log, thread, "follow_up", list(messages))
        return queued_result(thread, seen.values["run"]["id"])

    return await saver.database.hop(queue)


def _polls_later(seen: StateSnapshot) -> bool:
    """Whether a run that was seen there asks for follow-ups before it ends, if it ends by itself.

    It may be some steps further: those that change nothing else are stored with the next one. But
    each of these decisions leads to an answer of the model, which is stored before the last poll.
    """
    decision: Decision = seen.values.get("decision", Decision(kind="done"))
    return decision["kind"] in _POLLS_LATER and not seen.interrupts
