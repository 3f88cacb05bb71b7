"""What is deleted, and that nothing which is still needed goes with it."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from tests.support.graphs import on
from tests.support.savers import KINDS, chat, count, history, ours, talk

TABLES = (
    "checkpoints",
    "writes",
    "loopwright_branches",
    "loopwright_rows",
    "loopwright_values",
)


def counts(path: Path) -> list[int]:
    return [count(path, table) for table in TABLES]


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_thread_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    make, work = KINDS[kind]
    with ours(path) as saver:
        work(make(saver), "other")
        before = counts(path)
        work(make(saver))
        assert counts(path) > before
        saver.prune(["t"], strategy="delete")
        assert counts(path) == before
        work(make(saver), "t")
        saver.delete_thread("t")
        saver.delete_thread("other")
        assert counts(path) == [0] * len(TABLES)


def test_an_unknown_strategy_is_refused(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        talk(chat(saver))
        with pytest.raises(ValueError, match="unknown strategy 'all': use one of keep_latest"):
            saver.prune(["t"], strategy="all")
        assert len(history(chat(saver))) == 18


def test_a_prune_takes_the_rows_that_only_old_checkpoints_had(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with ours(path) as saver:
        graph = chat(saver)
        talk(graph)
        state = graph.get_state(on("t"))
        for _ in range(5):
            forked = graph.update_state(state.parent_config, {"messages": [_long("fork")]})
        messages = graph.get_state(forked).values["messages"]
        saver.prune(["t"])
        assert count(path, "loopwright_rows") == len(messages)
        assert graph.get_state(on("t")).values["messages"] == messages
        saver.prune(["t"])
        assert counts(path)[:1] == [1]


def _long(text: str) -> HumanMessage:
    return HumanMessage(text * 200)


def test_a_rolled_back_run_leaves_the_thread_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with ours(path) as saver:
        graph = chat(saver)
        given = [HumanMessage("go", id=f"h{number}") for number in range(2)]
        graph.invoke({"messages": given[:1]}, on("t", metadata={"run_id": "1"}), durability="sync")
        before, rows = history(graph), count(path, "loopwright_rows")
        graph.invoke({"messages": given[1:]}, on("t", metadata={"run_id": "2"}), durability="sync")
        assert count(path, "loopwright_rows") > rows
        saver.delete_for_runs(["2"])
        assert history(graph) == before
        assert count(path, "loopwright_rows") == rows


def test_a_process_does_not_build_on_rows_that_another_has_deleted(tmp_path: Path) -> None:
    """It remembers a longer list than what is left, and the branch has grown differently since."""
    path = tmp_path / "threads.db"
    long: Any = [{"n": number, "text": "x" * 300} for number in range(6)]
    with ours(path) as saver:
        other = SqliteCheckpointer(Database(path))
        _put(saver, "1", None, long[:3])
        _put(saver, "2", "1", long)
        _put(other, "3", "1", long[:3])
        other.prune(["t"])
        assert count(path, "loopwright_rows") == 3
        _put(other, "4", "3", [*long[:3], *({"other": "y" * 300} for _ in range(9))])
        _put(saver, "5", "2", [*long, "more"])
        found = saver.get_tuple(on("t"))
        assert found is not None
        assert found.checkpoint["channel_values"]["items"] == [*long, "more"]
        other.database.close()


def _put(saver: SqliteCheckpointer, id: str, parent: str | None, items: list[Any]) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}}
    checkpoint: Any = {
        "v": 4,
        "id": id,
        "ts": "",
        "channel_values": {"items": items},
        "channel_versions": {"items": int(id)},
        "versions_seen": {},
    }
    saver.put(config, checkpoint, {}, {"items": int(id)})  # type: ignore[arg-type]
