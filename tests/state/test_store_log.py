"""The log over a LangGraph store: numbers that grow whatever the clocks say, and exact names."""

import time
from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.base import ListNamespacesOp, SearchOp
from langgraph.store.memory import InMemoryStore

from loopwright.state.store_log import StoreLog


class LooseStore(InMemoryStore):
    """A store that finds more than what was asked for, as one that compares texts may."""

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        return super().batch([self._loosened(op) for op in ops])

    def _loosened(self, op: Any) -> Any:
        if isinstance(op, SearchOp):
            return op._replace(namespace_prefix=op.namespace_prefix[:1])
        if isinstance(op, ListNamespacesOp):
            return op._replace(match_conditions=None)
        return op


def test_only_the_exact_thread_and_kind_are_read_and_deleted() -> None:
    log = StoreLog(LooseStore())
    for thread, kind in (("t", "k"), ("t", "kk"), ("tt", "k")):
        log.append(thread, kind, thread + kind)
    assert [entry.body for entry in log.read("t", ["k"])] == ["tk"]
    log.delete("t")
    assert log.read("t", ["k", "kk"]) == []
    assert [entry.body for entry in log.read("tt", ["k"])] == ["ttk"]


def test_numbers_grow_beyond_another_process_whose_clock_is_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, now = InMemoryStore(), time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3_600_000_000_000)
    ahead = StoreLog(store).append("t", "k", "from a clock that is an hour ahead")
    monkeypatch.setattr(time, "time_ns", lambda: now)
    behind = StoreLog(store)
    assert behind.append("t", "k", "later") > ahead
    assert [entry.body for entry in behind.read("t", ["k"], ahead)] == ["later"]


def test_numbers_of_one_process_grow_although_its_clock_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    log = StoreLog(InMemoryStore())
    numbers = [log.append(f"t{n}", "k", n) for n in range(50)]
    assert numbers == sorted(set(numbers))
    assert all(number < 2**63 for number in numbers)
