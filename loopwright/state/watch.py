"""A thread that looks after what goes on in this process, as long as something does.

What it looks at is said by who makes it.
"""

import threading
from collections.abc import Callable

INTERVAL = 0.2
"""Seconds between two looks."""


class Watch:
    """Calls `look` in a thread of its own, from `notice` on until `needed` says no."""

    def __init__(self, look: Callable[[], None], needed: Callable[[], bool]) -> None:
        self._look, self._needed = look, needed
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def notice(self) -> None:
        """Something begins: make sure that someone looks."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._watch, name="loopwright-watch", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Stop looking for good, and return when the thread is gone. May be called twice."""
        self._closed.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _watch(self) -> None:
        while True:
            self._look()
            stop = self._closed.wait(INTERVAL)
            with self._lock:
                if stop or not self._needed():
                    self._thread = None
                    return
