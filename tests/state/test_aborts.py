"""A request to cancel is noticed by whoever runs the thread, and by nobody who began later."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loopwright.state.aborts import AbortWatch, request_abort
from loopwright.state.database import Database
from loopwright.state.lease import Lease, Leases
from loopwright.state.sqlite_log import SqliteLog

PATIENCE = 60.0


@dataclass(frozen=True)
class Watched:
    """A watched log, and a second connection to its file: that of another process."""

    leases: Leases
    watch: AbortWatch
    elsewhere: SqliteLog
    before: frozenset[threading.Thread]

    def threads(self) -> list[threading.Thread]:
        """The threads that look here."""
        return [t for t in _looking() if t not in self.before]


def _looking() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "loopwright-aborts"]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    here, there = Database(tmp_path / "t.db"), Database(tmp_path / "t.db")
    leases = Leases()
    watch = AbortWatch(SqliteLog(here), leases)
    yield Watched(leases, watch, SqliteLog(there), frozenset(_looking()))
    watch.close()
    here.close()
    there.close()


def aborted(lease: Lease) -> str | None:
    """The reason of the abort, as soon as it has come."""
    heard = threading.Event()
    lease.signal.on_abort(heard.set)
    assert heard.wait(PATIENCE)
    return lease.signal.reason


def test_a_request_from_elsewhere_sets_the_signal_of_the_thread_s_run_and_of_no_other(
    watched: Watched,
) -> None:
    other, lease = watched.leases.claim("other"), watched.leases.claim("t")
    request_abort(watched.elsewhere, "t", "enough")
    assert aborted(lease) == "enough"
    assert not other.signal.aborted


def test_a_request_from_before_the_run_is_not_meant_for_it(watched: Watched) -> None:
    request_abort(watched.elsewhere, "t", "too early")
    later, other = watched.leases.claim("t"), watched.leases.claim("other")
    request_abort(watched.elsewhere, "other", "enough")
    assert aborted(other) == "enough"  # so the request to the first was looked at, too
    assert not later.signal.aborted


def test_the_next_run_of_a_thread_is_not_aborted_along(watched: Watched) -> None:
    first = watched.leases.claim("t")
    request_abort(watched.elsewhere, "t", "enough")
    aborted(first)
    first.release()
    second, other = watched.leases.claim("t"), watched.leases.claim("other")
    request_abort(watched.elsewhere, "other", "enough")
    aborted(other)
    assert not second.signal.aborted


def test_all_graphs_of_a_thread_are_meant(watched: Watched) -> None:
    outer, nested = watched.leases.claim("t"), watched.leases.claim("t", "node:1")
    request_abort(watched.elsewhere, "t", "enough")
    assert (aborted(outer), aborted(nested)) == ("enough", "enough")


def test_one_thread_looks_and_only_while_something_runs(watched: Watched) -> None:
    assert watched.threads() == []
    leases = [watched.leases.claim("t"), watched.leases.claim("u")]
    (thread,) = watched.threads()
    assert thread.daemon
    for lease in leases:
        lease.release()
    thread.join(PATIENCE)
    assert watched.threads() == []
    lease = watched.leases.claim("t")
    request_abort(watched.elsewhere, "t", "again")
    assert aborted(lease) == "again"


def test_closing_ends_the_thread_whatever_runs_and_none_begins_later(watched: Watched) -> None:
    watched.leases.claim("t")
    watched.watch.close()
    watched.watch.close()
    assert watched.threads() == []
    assert watched.leases.watchers == []
    watched.leases.claim("u")
    watched.watch.notice()
    assert watched.threads() == []
