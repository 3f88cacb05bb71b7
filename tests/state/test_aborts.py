"""A request to cancel reaches whoever runs the thread, and nobody who began later."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loopwright.state.aborts import AbortRequests, request_abort
from loopwright.state.database import Database
from loopwright.state.lease import Lease, Leases
from loopwright.state.sqlite_log import SqliteLog


@dataclass(frozen=True)
class Heard:
    """A log that is listened to, and a second connection to its file: that of another process."""

    leases: Leases
    requests: AbortRequests
    elsewhere: SqliteLog

    def reasons(self, *leases: Lease) -> list[str | None]:
        """Why each is aborted once the requests were delivered, None for one that is not."""
        self.requests.deliver(leases)
        return [lease.signal.reason for lease in leases]


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    here, there = Database(tmp_path / "t.db"), Database(tmp_path / "t.db")
    yield Heard(Leases(), AbortRequests(SqliteLog(here)), SqliteLog(there))
    here.close()
    there.close()


def test_a_request_sets_the_signal_of_the_thread_s_run_and_of_no_other(heard: Heard) -> None:
    lease, other = heard.leases.claim("t"), heard.leases.claim("other")
    assert heard.reasons(lease, other) == [None, None]
    request_abort(heard.elsewhere, "t", "enough")
    assert heard.reasons(lease, other) == ["enough", None]


def test_a_request_from_before_the_run_is_not_meant_for_it(heard: Heard) -> None:
    request_abort(heard.elsewhere, "t", "too early")
    assert heard.reasons(heard.leases.claim("t")) == [None]


def test_the_next_run_of_a_thread_is_not_aborted_along(heard: Heard) -> None:
    first = heard.leases.claim("t")
    request_abort(heard.elsewhere, "t", "enough")
    first.release()
    second = heard.leases.claim("t")
    assert heard.reasons(first, second) == ["enough", None]


def test_all_graphs_of_a_thread_are_meant(heard: Heard) -> None:
    outer, nested = heard.leases.claim("t"), heard.leases.claim("t", "node:1")
    request_abort(heard.elsewhere, "t", "enough")
    assert heard.reasons(outer, nested) == ["enough", "enough"]


def test_a_request_that_came_before_its_run_was_listened_for_is_heard(heard: Heard) -> None:
    lease, other = heard.leases.claim("t"), heard.leases.claim("other")
    request_abort(heard.elsewhere, "t", "enough")
    assert heard.reasons(other) == [None]
    assert heard.reasons(lease) == ["enough"]


def test_the_log_is_read_only_when_another_process_has_written(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = heard.leases.claim("t")
    heard.reasons(lease)
    monkeypatch.setattr(SqliteLog, "read", None)
    assert heard.reasons(lease) == [None]
