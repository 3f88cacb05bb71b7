"""The two queues of a thread, steering and follow-up: how messages get in, out, and are cleared.

Where they are kept is `state.log`'s; when a run asks for some is the nodes'.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AnyMessage, ToolMessage, message_to_dict, messages_from_dict

from loopwright.errors import InputError
from loopwright.events import QueueUpdate
from loopwright.failpoints import reach
from loopwright.runs import Run
from loopwright.state.log import Entry, Log
from loopwright.state.messages import Prompt, as_messages, calls
from loopwright.state.schema import Cursor

Queue = Literal["steering", "follow_up"]
CLEARED = "cleared"
"""Kind of the log entry that takes back what waited in a queue before it."""


def enqueue(log: Log, thread: str, queue: Queue, prompt: Prompt) -> list[int]:
    """Append each message of a prompt to a thread's queue; committed when this returns.

    Raises InputError for tool calls and results: messages of a queue may be delivered apart.
    """
    messages = as_messages(prompt)
    if any(calls(message) or isinstance(message, ToolMessage) for message in messages):
        raise InputError("a queue takes no tool calls and no results: send them as a prompt")
    return log.append_all(thread, queue, [message_to_dict(message) for message in messages])


def clear(log: Log, thread: str, queue: Queue) -> None:
    """Take back what waits in a queue; what was delivered stays delivered (S2-02)."""
    log.append(thread, CLEARED, {"queue": queue})


def waiting(log: Log, thread: str, queue: Queue, cursor: Cursor) -> list[AnyMessage]:
    """The messages of a queue that were not delivered yet."""
    return _messages(_left(log.read(thread, [queue, CLEARED], cursor[queue]), queue))


def head(log: Log, thread: str) -> Cursor:
    """The cursor behind all that was queued so far: only what comes after it will be delivered."""

    def last(queue: Queue) -> int:
        entries = log.read(thread, [queue, CLEARED])
        return entries[-1].sequence if entries else 0

    return Cursor(steering=last("steering"), follow_up=last("follow_up"))


@dataclass(frozen=True)
class Taken:
    """What a poll found: the messages, each with the cursor that counts it as delivered."""

    queue: Queue
    messages: list[AnyMessage]
    cursors: list[Cursor]
    waiting: int
    """How many the queue still holds behind them."""


async def take(run: Run, cursor: Cursor, queue: Queue) -> Taken | None:
    """Poll a queue; None if nothing waits. The mode is read at each poll (S2-02)."""
    log = run.dependencies.log
    left = _left(await log.poll(run.thread, [queue, CLEARED], cursor[queue]), queue)
    taken = left if run.queue_mode(queue) == "all" else left[:1]
    if not taken:
        return None
    cursors = [_moved(cursor, queue, entry.sequence) for entry in taken]
    return Taken(queue, _messages(taken), cursors, len(left) - len(taken))


def _moved(cursor: Cursor, queue: Queue, sequence: int) -> Cursor:
    moved = cursor.copy()
    moved[queue] = sequence
    return moved


async def deliver(run: Run, taken: Taken | None) -> None:
    """Add what was taken to the ledger.

    A message is delivered exactly once, whatever fails on the way, because the cursor is stored in
    the same checkpoint as the message.
    """
    if taken is None:
        return
    count = len(taken.messages)
    await run.emit(QueueUpdate(queue=taken.queue, delivered=count, waiting=taken.waiting))
    for message, cursor in zip(taken.messages, taken.cursors, strict=True):
        await run.append(message, cursor)
    reach("drain")


def _left(entries: Sequence[Entry], queue: Queue) -> list[Entry]:
    """The queue's entries behind the last one that cleared it."""
    left: list[Entry] = []
    for entry in entries:
        if entry.kind == queue:
            left.append(entry)
        elif entry.body["queue"] == queue:
            left = []
    return left


def _messages(entries: Sequence[Entry]) -> list[AnyMessage]:
    bodies: list[Any] = [entry.body for entry in entries]
    messages: Any = messages_from_dict(bodies)
    return list(messages)
