"""Aborting a run from another process: a request in the log, noticed by whoever runs the thread.

What an abort does to a run is the loop's; inside one process the signal is set directly.
"""

import threading
import time
from typing import Protocol

from loopwright.state.lease import Leases
from loopwright.state.log import Log

ABORT = "abort"
INTERVAL = 0.2
"""Seconds between two looks at the log while something runs."""


class WatchedLog(Log, Protocol):
    """A log that other processes write too."""

    def version(self) -> int:
        """A number that changes when another process has written."""
        ...


def request_abort(log: Log, thread: str, reason: str) -> None:
    """Ask whoever runs the thread now to cancel that run; later runs are not touched."""
    log.append(thread, ABORT, {"at": time.time(), "reason": reason})


class AbortWatch:
    """A thread that looks for abort requests while this process runs something, and only then."""

    def __init__(self, log: WatchedLog, leases: Leases) -> None:
        self._log, self._leases = log, leases
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._seen = -1
        leases.watchers.append(self.notice)

    def notice(self) -> None:
        """A run begins: make sure that someone looks."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._watch, name="loopwright-aborts", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Stop looking, and return when the thread is gone."""
        self._closed.set()
        if self.notice in self._leases.watchers:
            self._leases.watchers.remove(self.notice)
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _watch(self) -> None:
        while True:
            self._look()
            stop = self._closed.wait(INTERVAL)
            with self._lock:
                if stop or not self._leases.held():
                    self._thread = None
                    return

    def _look(self) -> None:
        version = self._log.version()
        if version == self._seen:
            return
        self._seen = version
        for lease in self._leases.held():
            for entry in self._log.read(lease.thread, [ABORT]):
                if entry.body["at"] >= lease.claimed:
                    lease.signal.abort(entry.body["reason"])
