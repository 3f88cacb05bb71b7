"""Processes that begin as copies of one that has imported everything, each with a pipe to it.

What such a process does is said in `worker`.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self, TypeVar

T = TypeVar("T")

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.chaos.worker"])


class Process:
    """A process that runs `target(*args, pipe)` until it ends or is killed."""

    def __init__(self, target: Callable[..., None], *args: Any) -> None:
        self._pipe, there = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=target, args=(*args, there), daemon=True)
        self._process.start()
        there.close()  # or its end would go unnoticed here

    def say(self, what: object) -> None:
        """Give it something; does nothing if it is gone."""
        try:
            self._pipe.send(what)
        except OSError:
            return

    def hear(self, seconds: float) -> Any:
        """What it tells next. Raises TimeoutError; EOFError when it is gone and all is heard."""
        if not self._pipe.poll(seconds):
            raise TimeoutError
        try:
            return self._pipe.recv()
        except OSError as error:  # it was killed while it told something
            raise EOFError from error

    def kill(self) -> None:
        """Kill it with SIGKILL; what it has told before can still be heard."""
        self._process.kill()

    def code(self) -> int | None:
        """Its exit code once it is gone."""
        self._process.join()
        self._pipe.close()
        return self._process.exitcode

    @property
    def connection(self) -> Connection:
        """The pipe, for whoever waits for several processes."""
        return self._pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.code()
