"""Copies of threads: whole, and independent of what they were copied from."""

from pathlib import Path

import pytest

from loopwright.state.doctor import examine
from tests.support.graphs import on
from tests.support.savers import KINDS, Opener, fan, folding, history, ours


@pytest.mark.parametrize("opened", [ours, folding])
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_the_same_history_and_its_own_future(
    kind: str, opened: Opener, tmp_path: Path
) -> None:
    make, work = KINDS[kind]
    with opened(tmp_path / "threads.db") as saver:
        graph = make(saver)
        work(graph)
        saver.copy_thread("t", "copy")
        saver.copy_thread("copy", "copy")
        before = history(graph)
        assert history(graph, "copy") == before
        work(graph, "copy")
        assert history(graph) == before
        after = history(graph, "copy")
        saver.delete_thread("t")
        assert history(graph, "copy") == after
        saver.prune(["copy"])
        assert history(graph, "copy")[0] == after[0]


def test_a_copy_onto_a_thread_that_exists_adds_to_it(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        graph = fan(saver)
        graph.invoke({"items": [1]}, on("t"), durability="sync")
        graph.invoke({"items": [2, 3]}, on("copy"), durability="sync")
        mine, theirs = history(graph), history(graph, "copy")
        saver.copy_thread("t", "copy")
        merged = history(graph, "copy")
        assert all(item in merged for item in [*mine, *theirs])
        saver.copy_thread("t", "copy")
        assert history(graph, "copy") == merged
    assert not examine(tmp_path / "threads.db").findings
