"""What is left of deleted checkpoints: as much as DeltaChannels of others need, and no more."""

from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.reading import PAST
from tests.support.graphs import on
from tests.support.savers import chat, count, deltas, grow, history, ours, stock, talk


def test_what_deltas_are_rebuilt_from_is_kept_out_of_sight(tmp_path: Path) -> None:
    """The channel that was written once has no stored value: its write is needed for ever."""
    path = tmp_path / "threads.db"
    with ours(path) as saver:
        graph = deltas(saver)
        grow(graph)
        newest = history(graph)[0]
        old = [item.config for item in saver.list(on("t"))][1:]
        saver.prune(["t"])
        assert history(graph) == [newest]
        assert [saver.get_tuple(config) for config in old] == [None] * len(old)
        assert 1 < count(path, "checkpoints") < 8
        for _ in range(2):
            grow(graph)
            newest = history(graph)[0]
            assert newest[0]["rare"] == ["once"]
            saver.prune(["t"])
            assert history(graph) == [newest]
        assert count(path, "checkpoints") < 8


def test_a_deleted_run_leaves_only_what_deltas_of_another_need(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        graph = deltas(saver)
        for run in ("1", "2"):
            config = on("t", metadata={"run_id": run})
            graph.invoke({"log": ["begin"]}, config, durability="sync")
        whole = history(graph)
        saver.delete_for_runs(["1", "unknown"])
        left = [snapshot.metadata["run_id"] for snapshot in graph.get_state_history(on("t"))]
        assert history(graph) == whole[: len(left)]
        assert set(left) == {"2"}
        saver.delete_for_runs(["2"])
        assert history(graph) == []


def test_nothing_is_left_where_no_delta_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with ours(path) as saver:
        talk(chat(saver))
        saver.prune(["t"])
        assert count(path, "checkpoints") == 1


def test_what_is_left_holds_only_the_channels_that_are_needed(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        grow(deltas(saver))
        assert "count" in channels(saver)
        saver.prune(["t"])
        assert channels(saver) == {"log", "rare"}


def channels(saver: SqliteCheckpointer) -> set[str]:
    """The channels with writes of checkpoints below the newest one."""
    query = "SELECT DISTINCT channel FROM writes WHERE channel NOT LIKE 'branch:%'"
    with saver.cursor(transaction=False) as cursor:
        return {channel for (channel,) in cursor.execute(query) if not channel.startswith("__")}


def test_a_stored_value_is_kept_even_if_nothing_was_written_since(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        for id, values in ("1", {"log": ["seed"]}), ("2", {"other": 1}), ("3", {"other": 2}):
            parent = str(int(id) - 1) if id != "1" else None
            config = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}
            checkpoint: Any = {
                **empty_checkpoint(),
                "id": id,
                "channel_values": values,
                "channel_versions": {"log": 1, "other": int(id)},
            }
            counted: Any = {"counters_since_delta_snapshot": {"log": (0, int(id))}}
            new: Any = {channel: int(id) for channel in values}
            saver.put({"configurable": config}, checkpoint, counted, new)
        saver.prune(["t"])
        found: Any = saver.get_delta_channel_history(config=on("t"), channels=["log"])
        assert found == {"log": {"seed": ["seed"], "writes": []}}
        assert [item.checkpoint["id"] for item in saver.list(on("t"))] == ["3"]
        assert count(tmp_path / "threads.db", "checkpoints") == 2


def test_a_stock_thread_can_be_pruned_too(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with stock(path) as saver:
        grow(deltas(saver))
        newest = history(deltas(saver))[0]
    with ours(path) as saver:
        saver.prune(["t"])
        assert history(deltas(saver)) == [newest]
        with saver.cursor(transaction=False) as cursor:
            left = cursor.execute("SELECT CAST(metadata AS TEXT) FROM checkpoints").fetchall()
        assert left.count((PAST,)) == len(left) - 1 > 0
        grow(deltas(saver))
        assert history(deltas(saver))[0][0]["rare"] == ["once"]
