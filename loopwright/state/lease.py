"""Who may run a thread: at most one run at a time.

This holds within one process; the claim is made synchronously, before anything is awaited.
"""

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from loopwright.errors import BusyThreadError
from loopwright.signals import AbortSignal


@dataclass(frozen=True, eq=False)
class Lease:
    """The right to run a thread until it is released, and the signal that cancels its run."""

    thread: str
    owner: "Leases"
    signal: AbortSignal
    claimed: float = field(default_factory=time.time)
    """When it was taken, in seconds since the epoch."""

    def release(self) -> None:
        """Give the thread back; a second call does nothing, also when someone else has it now."""
        self.owner.release(self)


class Leases:
    """The threads that are being run on one database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Lease] = {}
        self.watchers: list[Callable[[], None]] = []
        """Told about every claim."""

    def claim(
        self, thread: str, namespace: str = "", *, signal: AbortSignal | None = None
    ) -> Lease:
        """Take the thread or raise BusyThreadError; nothing is disturbed then (S3-11).

        `namespace` tells graphs nested in one thread apart, as LangGraph's checkpoints do. `signal`
        is what cancels the run, a fresh one if None.
        """
        key = (thread, namespace)
        with self._lock:
            if key in self._held:
                raise BusyThreadError(thread)
            self._held[key] = lease = Lease(thread, self, signal or AbortSignal())
        for watcher in list(self.watchers):
            watcher()
        return lease

    def held(self) -> list[Lease]:
        """The leases that are held now."""
        with self._lock:
            return list(self._held.values())

    def abort(self, thread: str, reason: str) -> None:
        """Set the signal of whatever runs the thread."""
        for lease in self.held():
            if lease.thread == thread:
                lease.signal.abort(reason)

    def release(self, lease: Lease) -> None:
        """Give back what this lease holds, if it still does."""
        with self._lock:
            self._held = {key: held for key, held in self._held.items() if held is not lease}


_by_file: "weakref.WeakValueDictionary[str, Leases]" = weakref.WeakValueDictionary()
_by_file_lock = threading.Lock()


def leases_of(path: str) -> Leases:
    """The leases that all users of one database file in this process share."""
    with _by_file_lock:
        return _by_file.setdefault(path, Leases())
