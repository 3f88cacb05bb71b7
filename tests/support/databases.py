"""A database whose lock another thread holds, as it does while it works on the file."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.state.database import Database


@contextmanager
def held(database: Database) -> Iterator[None]:
    """While this lasts, another thread has the database's lock."""
    has_it, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with database.lock:
            has_it.set()
            may_go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    has_it.wait()
    try:
        yield
    finally:
        may_go.set()
        thread.join()
