"""Going back in a thread's past: the moment that is meant, forks of it, and rewinding to it.

How a saver keeps the past is its own; who may do this, and when, is said in `stored`.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    create_checkpoint,
    empty_checkpoint,
)

from loopwright.errors import UnknownMomentError, UnknownThreadError
from loopwright.state.keeping import KeepingSaver
from loopwright.state.moments import TO, At, Moment, chosen, listed
from loopwright.state.schema import Cursor

Saver = BaseCheckpointSaver[Any]

_USUAL_BATCH = 64
"""Messages at the end of a transcript among which its last answer usually is."""


def together(saver: Saver) -> AbstractContextManager[object]:
    """One commit for all that is stored inside; with someone else's saver, one for each."""
    return saver.transaction() if isinstance(saver, KeepingSaver) else nullcontext()


def moments(saver: Saver, thread: str) -> Iterable[Moment]:
    """The moments of a thread, the newest first; read as they are asked for."""
    return saver.moments(thread) if isinstance(saver, KeepingSaver) else listed(saver, thread)


def located(saver: Saver, thread: str, at: At = None) -> Moment:
    """The moment that is meant, the newest for None; a Moment is taken as it is.

    Raises UnknownThreadError and UnknownMomentError.
    """
    newest = next(iter(moments(saver, thread)), None)
    if newest is None:
        raise UnknownThreadError(thread)
    if at is None or isinstance(at, Moment):
        return at or newest
    return chosen(moments(saver, thread), thread, at)


def loaded(saver: Saver, thread: str, moment: Moment) -> CheckpointTuple:
    """The checkpoint of a moment with its values. Raises UnknownMomentError."""
    found = saver.get_tuple(_config(thread, moment.id))
    if found is None:
        raise UnknownMomentError(thread, moment.id)
    return found


def last_answer(saver: Saver, thread: str, moment: Moment) -> AIMessage | None:
    """The last assistant message at a moment: no other one has calls that may be open."""
    if isinstance(saver, KeepingSaver):
        for message in reversed(saver.tail(thread, moment.id, "messages", _USUAL_BATCH) or ()):
            if isinstance(message, AIMessage):
                return message
    messages = loaded(saver, thread, moment).checkpoint["channel_values"].get("messages") or ()
    return next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)


def is_stored(saver: Saver, thread: str) -> bool:
    """Whether a thread has a past."""
    return next(iter(moments(saver, thread)), None) is not None


def fork(saver: Saver, source: str, moment: Moment, target: str, cursor: Cursor) -> None:
    """Begin the target thread as the source was at a moment, with this queue cursor.

    Under our saver it shares what is stored; another one stores the whole state again. What the
    tasks of the moment had written comes along if nothing followed. Raises UnknownMomentError.
    """
    if isinstance(saver, KeepingSaver) and saver.fork(
        source, moment.id, target, {"cursor": cursor}
    ):
        return
    found = loaded(saver, source, moment)
    checkpoint = found.checkpoint.copy()
    _set_cursor(saver, checkpoint, cursor)
    metadata: Any = {**found.metadata, "source": "fork"}
    metadata.pop("run_id", None)
    kept = saver.put(_config(target), checkpoint, metadata, checkpoint["channel_versions"])
    if moment.id == located(saver, source).id:
        for task, writes in groupby(found.pending_writes or (), lambda write: write[0]):
            saver.put_writes(kept, [(channel, value) for _, channel, value in writes], task)


def rewind(saver: Saver, thread: str, moment: Moment, cursor: Cursor) -> None:
    """Make a moment the newest again: what it held is stored anew, with this queue cursor.

    It follows what the moment had followed, as LangGraph's own copies do. What its tasks had
    written is not taken along: they are begun again. Raises UnknownMomentError.
    """
    if moment.id == located(saver, thread).id:
        return
    found = loaded(saver, thread, moment)
    step = int(found.metadata.get("step", 0)) + 1
    checkpoint = create_checkpoint(found.checkpoint, None, step)
    changed = _set_cursor(saver, checkpoint, cursor)
    above = found.parent_config or _config(thread)
    metadata: Any = {"source": "fork", "step": step, "parents": found.metadata.get("parents", {})}
    saver.put(above, checkpoint, metadata, changed)


def begin(saver: Saver, thread: str, values: dict[str, Any], then: str | None = None) -> None:
    """Store the first checkpoint of a thread: a state at which no run is going on, or behind which
    one goes on with the node `then`.
    """
    if then is not None:
        values = {**values, f"{TO}{then}": None}
    version: Any = saver.get_next_version(None, None)
    versions = dict.fromkeys(values, version)
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"], checkpoint["channel_versions"] = values, versions
    metadata: Any = {"source": "update", "step": 0, "parents": {}}
    saver.put(_config(thread), checkpoint, metadata, versions)


def _set_cursor(saver: Saver, checkpoint: Checkpoint, cursor: Cursor) -> dict[str, Any]:
    """Give a checkpoint of one's own this cursor; returns what changed, with its version."""
    versions: Any = checkpoint["channel_versions"]
    changed = {"cursor": saver.get_next_version(max(versions.values(), default=None), None)}
    checkpoint["channel_values"] = {**checkpoint["channel_values"], "cursor": cursor}
    checkpoint["channel_versions"] = {**versions, **changed}
    return changed


def _config(thread: str, id: str | None = None) -> Any:
    named = {"checkpoint_id": id} if id else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}}
