"""What a cancel means under policy `cut`: nothing is waited for, and nothing joins the transcript.

The signal itself is `signals`; that a run ends behind it is decided by the nodes.
"""

from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from loopwright.providers.contract import StreamEnd, StreamEvent
from loopwright.providers.reading import AbortableReader
from loopwright.runs import Run
from loopwright.signals import Aborted

T = TypeVar("T")


def is_cut(run: Run) -> bool:
    """Whether the run was cancelled and its policy is to cut."""
    return run.settings.cancel_policy == "cut" and run.signal.aborted


def unless_cut(run: Run) -> None:
    """Raise Aborted in a run that is cut."""
    if is_cut(run):
        raise Aborted(run.signal.reason)


async def uncut(run: Run, work: Awaitable[T]) -> T:
    """The outcome of `work`; under policy `cut` raises Aborted as soon as the run is cancelled.

    The work is then cancelled and not waited for. A value or an exception that comes in the same
    instant as the signal is dropped too (S0-22, S0-23).
    """
    if run.settings.cancel_policy != "cut":
        return await work
    try:
        value = await run.signal.race(work)
    except Exception:  # an exception in a run that is cut counts for nothing
        unless_cut(run)
        raise
    unless_cut(run)
    return value


async def until_cut(run: Run, source: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """The events of an answer, each asked for when the one before it was told; raises Aborted as
    soon as the run is cancelled, and leaves the source to close by itself (S0-24).
    """
    end: StreamEnd | None = None
    async with AbortableReader(source, run.signal, ahead=False) as events:
        async for event in events:
            if isinstance(event, StreamEnd):
                end = event
                break
            yield event
        unless_cut(run)
        error = events.error if end is None else None
    if error is not None:
        raise error
    if end is not None:
        yield end
