"""The append-only log beside the transcript: what anyone in any process hands to a thread.

Steering and follow-up messages wait here; which of them were delivered is the cursor in the
checkpoint, never a deletion here (design.md §5).
"""

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import message_to_dict

from loopwright.errors import InputError
from loopwright.state.messages import as_messages


@dataclass(frozen=True)
class Entry:
    """One appended entry; `sequence` grows over the whole log and is never used twice."""

    sequence: int
    thread: str
    kind: str
    body: Any


class Log(Protocol):
    """Appended entries are committed when `append` returns, and readable by every process."""

    def append(self, thread: str, kind: str, body: Any) -> int:
        """Store a JSON-able body; returns its sequence number. Callable from any thread."""
        ...

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """The entries of these kinds behind `after`, oldest first. Callable from any thread."""
        ...

    def delete(self, thread: str) -> None:
        """Forget the thread's entries; their numbers are not used again."""
        ...

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """`read` without blocking the event loop."""
        ...


class MemoryLog:
    """A log that lives as long as its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, list[Entry]] = {}
        self._last = 0

    def append(self, thread: str, kind: str, body: Any) -> int:
        with self._lock:
            self._last += 1
            self._entries.setdefault(thread, []).append(Entry(self._last, thread, kind, body))
            return self._last

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        with self._lock:
            entries = self._entries.get(thread, [])
            return [e for e in entries if e.sequence > after and e.kind in kinds]

    def delete(self, thread: str) -> None:
        with self._lock:
            self._entries.pop(thread, None)

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        return self.read(thread, kinds, after)


class CallbackLog:
    """A log whose queues are functions: each poll asks them for what is new.

    For callers who keep their own queues; nothing can be appended here. What a poll does not take
    waits for the next one.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Any] | None]) -> None:
        self._sources = sources
        self._waiting: list[Entry] = []
        self._last = 0

    def append(self, thread: str, kind: str, body: Any) -> int:
        """Raises InputError: the functions are the queues."""
        raise InputError("this run takes its queues from functions: put the message there")

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """Nothing is kept here."""
        return []

    def delete(self, thread: str) -> None:
        """Nothing is kept here."""

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        for kind in kinds:
            source = self._sources.get(kind)
            given = source() if source is not None else []
            for message in await given if inspect.isawaitable(given) else given:
                self._last += 1
                body = message_to_dict(*as_messages([message]))
                self._waiting.append(Entry(self._last, thread, kind, body))
        self._waiting = [e for e in self._waiting if e.kind not in kinds or e.sequence > after]
        return [entry for entry in self._waiting if entry.kind in kinds]
