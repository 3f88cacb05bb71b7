"""At most one run per thread in a process, whoever asks at the same time."""

import asyncio
import os
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
    assert refused.value.holder is not None
    assert (refused.value.holder.process, refused.value.holder.expires) == (os.getpid(), None)
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


def test_an_abort_reaches_the_run_of_the_thread_in_all_its_namespaces() -> None:
    leases = Leases()
    held = [leases.claim(*key) for key in (("t",), ("t", "node:1"), ("u",))]
    leases.abort("t", "enough")
    assert [lease.signal.reason for lease in held] == ["enough", "enough", None]


@pytest.mark.anyio
async def test_whoever_waits_for_the_release_hears_of_it_also_from_another_thread() -> None:
    lease = Leases().claim("t")
    waiting = [asyncio.ensure_future(lease.released()) for _ in range(2)]
    await asyncio.sleep(0)
    waiting.pop().cancel()
    await asyncio.to_thread(lease.release)
    await waiting.pop()
    await lease.released()


def test_a_release_is_heard_by_nobody_when_the_loop_is_closed() -> None:
    lease = Leases().claim("t")

    async def leave() -> None:
        waiting = asyncio.ensure_future(lease.released())
        await asyncio.sleep(0)
        assert not waiting.done()

    asyncio.run(leave())
    lease.release()
