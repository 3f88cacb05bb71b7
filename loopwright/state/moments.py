"""The moments of a thread's past: small values that tell what was stored when, and name it.

How a saver reads them is the saver's; what going back to one means, `stored`'s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.constants import START

from loopwright.errors import UnknownMomentError

CHANNELS = frozenset({"messages", "run", "decision"})
"""What of a state a moment tells something about."""

TO = "branch:to:"
"""How the channels begin that say which node comes next."""
_TAKING_IN = (START, "load")


@dataclass(frozen=True)
class Moment:
    """A stored moment of a thread: what `fork`, `rewind`, `messages` and `export` take as `at`."""

    id: str
    """Of the checkpoint; the ids of a thread sort by time."""

    time: str
    """When it was stored, ISO 8601 in UTC."""

    messages: int
    """How many messages the transcript had."""

    run: str | None
    """The run that was going on or had ended, None before the first."""

    turn: int
    """The turn of that run, 0 before the first run."""

    decision: str
    """What the last step had decided, as the graph's edges take it; empty before the first."""

    next: str | None
    """The node that comes next; None when no run was going on."""

    source: str
    """What stored it: `input`, `loop`, `update` or `fork`."""

    parent: str | None
    """The moment that it followed; None for the first, and for the first of a fork."""


At = Moment | str | int | None
"""A moment: itself, its id or the beginning of that, a number of messages, or None for the last."""


def moment_of(
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
    parent: str | None,
    length: int,
    values: Mapping[str, Any],
) -> Moment:
    """The moment of a checkpoint, whose channels with a value are the keys of `values`.

    Only those named in CHANNELS have to be there as they are.
    """
    run, decision = values.get("run") or {}, values.get("decision") or {}
    return Moment(
        id=str(checkpoint["id"]),
        time=str(checkpoint["ts"]),
        messages=length,
        run=run.get("id"),
        turn=run.get("turn", 0),
        decision=decision.get("kind", ""),
        next=_next(values),
        source=str(metadata.get("source", "")),
        parent=parent,
    )


def _next(channels: Iterable[str]) -> str | None:
    """The node that LangGraph's own channels say comes next."""
    named = (name.removeprefix(TO) for name in channels if name.startswith(TO) or name == START)
    return next(named, None)


def moment_of_tuple(found: CheckpointTuple) -> Moment:
    """The moment of a checkpoint that any saver has read."""
    values, above = found.checkpoint["channel_values"], found.parent_config
    parent = above["configurable"]["checkpoint_id"] if above else None
    length = len(values.get("messages") or ())
    return moment_of(found.checkpoint, found.metadata, parent, length, values)


def listed(saver: BaseCheckpointSaver[Any], thread: str) -> Iterable[Moment]:
    """The moments of a thread under a saver that is not ours, the newest first."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return map(moment_of_tuple, saver.list(config))


def chosen(moments: Iterable[Moment], thread: str, at: Moment | str | int) -> Moment:
    """The moment that is meant; raises UnknownMomentError if there is none, or more than one.

    A number means the newest moment with so many messages: one at which no run was going on if
    there is one, and never one at which an input was about to be taken in.
    """
    if isinstance(at, bool) or not isinstance(at, Moment | str | int):
        raise UnknownMomentError(thread, at)
    if isinstance(at, int):
        found = _with_messages(moments, at)
    else:
        found = _named(moments, thread, at.id if isinstance(at, Moment) else at)
    if found is None:
        raise UnknownMomentError(thread, at)
    return found


def _with_messages(moments: Iterable[Moment], count: int) -> Moment | None:
    newest: Moment | None = None
    for moment in moments:
        if moment.messages == count and moment.next not in _TAKING_IN:
            if moment.next is None:
                return moment
            newest = newest or moment
    return newest


def _named(moments: Iterable[Moment], thread: str, id: str) -> Moment | None:
    found: Moment | None = None
    for moment in moments:
        if moment.id == id:
            return moment
        if id and moment.id.startswith(id):
            if found is not None:
                raise UnknownMomentError(thread, id, several=True)
            found = moment
    return found
