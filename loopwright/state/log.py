"""The append-only log beside the transcript: what is kept of a thread whatever its run does.

Steering and follow-up messages wait here; which of them were delivered is the cursor in the
checkpoint, never a deletion here (design.md §5). The journal of tool calls is in it too.
"""

import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langchain_core.messages import message_to_dict

from loopwright.errors import InputError
from loopwright.state.lease import Lease
from loopwright.state.messages import as_messages


@dataclass(frozen=True)
class Entry:
    """One appended entry; `sequence` grows over the whole log and is never used twice."""

    sequence: int
    thread: str
    kind: str
    body: Any


class Log(Protocol):
    """Appended entries are committed when the call returns, and readable by every process.

    Bodies are JSON values; what is read is a copy of its own. The sync methods may be called from
    any thread, the async ones do not block the event loop.
    """

    def append(self, thread: str, kind: str, body: Any) -> int:
        """Store one body; returns its sequence number. Raises TypeError for what is not JSON."""
        ...

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        """Store several bodies in one commit, all or none; returns their growing numbers.

        `full` asks for a commit that survives a power loss, where the log can tell.
        """
        ...

    async def commit(
        self,
        thread: str,
        kind: str,
        bodies: Sequence[Any],
        *,
        full: bool = False,
        lease: Lease | None = None,
    ) -> list[int]:
        """`append_all` for the event loop. A cancelled caller does not cut it short.

        Raises LeaseLostError if the run with this lease has lost the thread to another process,
        where the log can tell.
        """
        ...

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """The entries of these kinds behind `after`, oldest first.

        Entries of other kinds cost nothing, however many they are.
        """
        ...

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """`read` for the event loop."""
        ...

    def delete(self, thread: str) -> None:
        """Forget the thread's entries of every kind; their numbers are not used again."""
        ...


class MemoryLog:
    """A log that lives as long as its process.

    So that it does not grow with a long conversation, it keeps only the newest of kinds named
    `family/member`: the journal has one for each message with calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, list[Entry]]] = {}
        self._last = 0

    def append(self, thread: str, kind: str, body: Any) -> int:
        (sequence,) = self.append_all(thread, kind, [body])
        return sequence

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        texts = [json.dumps(body) for body in bodies]
        with self._lock:
            first, self._last = self._last + 1, self._last + len(texts)
            new = [Entry(number, thread, kind, text) for number, text in enumerate(texts, first)]
            stored = self._entries.setdefault(thread, {})
            if kind not in stored and "/" in kind:
                family = kind.partition("/")[0] + "/"
                for older in [other for other in stored if other.startswith(family)]:
                    del stored[older]
            stored.setdefault(kind, []).extend(new)
        return [entry.sequence for entry in new]

    async def commit(
        self,
        thread: str,
        kind: str,
        bodies: Sequence[Any],
        *,
        full: bool = False,
        lease: Lease | None = None,
    ) -> list[int]:
        return self.append_all(thread, kind, bodies)

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        with self._lock:
            stored = self._entries.get(thread, {})
            found = [e for kind in set(kinds) for e in stored.get(kind, ()) if e.sequence > after]
        in_order = sorted(found, key=lambda entry: entry.sequence)
        return [replace(entry, body=json.loads(entry.body)) for entry in in_order]

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        return self.read(thread, kinds, after)

    def delete(self, thread: str) -> None:
        with self._lock:
            self._entries.pop(thread, None)


class CallbackLog(MemoryLog):
    """A log whose queues are functions: each poll asks them for what is new.

    For callers who keep their own queues; nothing can be appended to those here. What a poll does
    not take waits for the next one. Other kinds are kept in memory.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Any] | None]) -> None:
        super().__init__()
        self._sources = sources
        self._waiting: list[Entry] = []
        self._polled = 0

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        """Raises InputError for a queue: the functions are the queues."""
        if kind in self._sources:
            raise InputError("this run takes its queues from functions: put the message there")
        return super().append_all(thread, kind, bodies)

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        if not any(kind in self._sources for kind in kinds):
            return self.read(thread, kinds, after)
        for kind in kinds:
            source = self._sources.get(kind)
            given = source() if source is not None else []
            for message in await given if inspect.isawaitable(given) else given:
                self._polled += 1
                body = message_to_dict(*as_messages([message]))
                self._waiting.append(Entry(self._polled, thread, kind, body))
        self._waiting = [e for e in self._waiting if e.kind not in kinds or e.sequence > after]
        return [entry for entry in self._waiting if entry.kind in kinds]
