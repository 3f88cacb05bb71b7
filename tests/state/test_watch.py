"""One thread looks, only while something goes on, and it is gone when it was closed."""

import threading
from collections.abc import Iterator

import pytest

from loopwright.state.watch import Watch

PATIENCE = 60.0


class Watched:
    """Something that may go on, and how often it was looked at."""

    def __init__(self) -> None:
        self.goes_on = True
        self.looks = threading.Semaphore(0)
        self.watch = Watch(self.looks.release, lambda: self.goes_on)
        self._before = frozenset(watching())

    def threads(self) -> list[threading.Thread]:
        """The threads that look here."""
        return [thread for thread in watching() if thread not in self._before]


def watching() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "loopwright-watch"]


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.watch.close()


def test_one_thread_looks_again_and_again_and_only_while_something_goes_on(
    watched: Watched,
) -> None:
    assert watched.threads() == []
    watched.watch.notice()
    watched.watch.notice()
    (thread,) = watched.threads()
    assert thread.daemon
    for _ in range(2):
        assert watched.looks.acquire(timeout=PATIENCE)
    watched.goes_on = False
    thread.join(PATIENCE)
    assert watched.threads() == []


def test_it_looks_again_when_something_begins_anew(watched: Watched) -> None:
    watched.goes_on = False
    for _ in range(2):
        watched.watch.notice()
        assert watched.looks.acquire(timeout=PATIENCE)
        for thread in watched.threads():
            thread.join(PATIENCE)


def test_closing_ends_the_thread_whatever_goes_on_and_none_begins_later(watched: Watched) -> None:
    watched.watch.notice()
    watched.watch.close()
    watched.watch.close()
    assert watched.threads() == []
    watched.watch.notice()
    assert watched.threads() == []


def test_it_may_be_closed_by_what_it_looks_at() -> None:
    closed = threading.Event()

    def close() -> None:
        watch.close()
        closed.set()

    watch = Watch(close, lambda: True)
    watch.notice()
    assert closed.wait(PATIENCE)
    watch.close()
