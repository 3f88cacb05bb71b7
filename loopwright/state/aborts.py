"""Aborting a run from another process: a request in the log, heard by whoever runs the thread.

What an abort does to a run is the loop's; inside one process the signal is set directly.
"""

import time
import weakref
from collections.abc import Iterable
from typing import Protocol

from loopwright.state.lease import Lease
from loopwright.state.log import Log

ABORT = "abort"


class SharedLog(Log, Protocol):
    """A log that other processes write too."""

    def version(self) -> int:
        """A number that changes when another process has written."""
        ...


def request_abort(log: Log, thread: str, reason: str) -> None:
    """Ask whoever runs the thread now to cancel that run; later runs are not touched."""
    log.append(thread, ABORT, {"at": time.time(), "reason": reason})


class AbortRequests:
    """The requests that other processes have put into a log."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self._seen = -1
        self._up_to_date: weakref.WeakSet[Lease] = weakref.WeakSet()

    def deliver(self, leases: Iterable[Lease]) -> None:
        """Set the signals of the runs that are meant. Costs one look if nothing was written."""
        version = self._log.version()
        if version != self._seen:
            self._up_to_date = weakref.WeakSet()
        for lease in leases:
            if lease in self._up_to_date:
                continue
            for entry in self._log.read(lease.thread, [ABORT]):
                if entry.body["at"] >= lease.claimed:
                    lease.signal.abort(entry.body["reason"])
            self._up_to_date.add(lease)
        self._seen = version
