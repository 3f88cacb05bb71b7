"""The file behind a trace: appended by a thread of its own, bounded, readable by its owner only.

Nothing here raises into a run: what cannot be written is counted, and told as soon as it can be.
"""

import asyncio
import json
import os
import stat
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from loopwright.errors import ConfigurationError
from loopwright.state.forks import follow_forks

FILE_BYTES = 256 * 1024 * 1024
"""Bytes that a file may come to."""


class TraceFile:
    """Lines that are appended to a file, which is made at the first one. Safe from any thread.

    A file that has reached its size takes no more lines; its last one says so. Raises
    ConfigurationError for a path that can hold no file.
    """

    def __init__(self, path: str | Path, most_bytes: int = FILE_BYTES) -> None:
        self.path = Path(path).expanduser().absolute()
        if self.path.is_dir() or not self.path.parent.is_dir():
            what = "is a folder" if self.path.is_dir() else "is in no folder that exists"
            raise ConfigurationError(f"trace {str(path)!r} {what}: name a file", field="trace")
        self._most = most_bytes
        self.forget_parent()
        follow_forks(self)

    def forget_parent(self) -> None:
        """Begin anew; a forked child appends with a thread of its own."""
        self.lost = 0
        """Lines that could not be written since the last one that was."""

        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._open: _Open | None = None
        self._full = False

    def append(self, line: bytes) -> None:
        """Have a line written, soon; neither blocks nor raises."""
        self._later(line)

    async def settled(self) -> None:
        """Return when all that was appended so far is written, or lost."""
        await asyncio.wrap_future(self._later(b""))

    def close(self) -> None:
        """Write what is left and let the file go; another line opens it again. May be called
        twice.
        """
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        if self._open is not None:
            self._open.close()
            self._open = None

    def _later(self, line: bytes) -> "Future[None]":
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="loopwright-trace")
            return self._thread.submit(self._write, line)

    def _write(self, line: bytes) -> None:
        if not line or self._full:
            return
        try:
            self._open = self._open or _Open(self.path)
            if self.lost:
                line = _told(type="lost", lines=self.lost) + line
            if self._open.size + len(line) > self._most:
                line, self._full = _told(type="full", bytes=self._most), True
            self._open.write(line)
            self.lost = 0
        except OSError:  # a full disk, a folder that is gone: the run goes on
            self.lost += 1
            if self._open is not None and not self._open.close.alive:
                self._open = None


class _Open:
    """An open file and its size; closed with its last reference."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        found = os.fstat(self._descriptor)
        self.size = found.st_size
        self._torn = False
        if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(self._descriptor, 0o600)

    def write(self, line: bytes) -> None:
        """All of it or an OSError; what is half written ends before the next line."""
        left = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        while left:
            written = os.write(self._descriptor, left)
            self.size += written
            left = left[written:]
        self._torn = False


def _told(**line: Any) -> bytes:
    return json.dumps(line).encode() + b"\n"
