"""At most one run per thread, whoever asks at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from loopwright.errors import BusyThreadError
from loopwright.state.lease import Lease, Leases


def test_a_claimed_thread_is_refused_by_name_until_it_is_released() -> None:
    leases = Leases()
    lease = leases.claim("t")
    with pytest.raises(BusyThreadError, match="thread 't' is busy") as refused:
        leases.claim("t")
    assert refused.value.thread == "t"
    lease.release()
    assert leases.claim("t").thread == "t"


def test_other_threads_and_nested_graphs_are_not_in_the_way() -> None:
    leases = Leases()
    assert [leases.claim(*key).thread for key in (("t",), ("u",), ("t", "node:1"))] == list("tut")


def test_a_second_release_does_not_take_the_thread_from_its_next_owner() -> None:
    leases = Leases()
    first = leases.claim("t")
    first.release()
    leases.claim("t")
    first.release()
    with pytest.raises(BusyThreadError):
        leases.claim("t")


def test_exactly_one_of_many_claims_wins() -> None:
    leases = Leases()

    def attempt(_: int) -> Lease | None:
        try:
            return leases.claim("t")
        except BusyThreadError:
            return None

    with ThreadPoolExecutor(16) as pool:
        won = [lease for lease in pool.map(attempt, range(200)) if lease]
    assert len(won) == 1
