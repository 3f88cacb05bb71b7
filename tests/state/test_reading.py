"""Reading: the history of DeltaChannels, and listings that keep no one from writing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver

from tests.support.graphs import on
from tests.support.savers import Opener, chat, deltas, folding, grow, ours, stock, talk


def test_the_history_of_deltas_is_that_of_the_saver_s_base_class(tmp_path: Path) -> None:
    """That one reads every ancestor in full. In one thread are both layouts, and packed writes."""
    ways: list[tuple[Opener, Opener]] = [(ours, ours), (stock, ours), (stock, folding)]
    for number, (first, second) in enumerate(ways):
        path = tmp_path / f"{number}.db"
        with first(path) as saver:
            grow(deltas(saver))
        with second(path) as saver:
            grow(deltas(saver))
            for item in saver.list(on("t")):
                for channels in (["log"], ["rare", "log", "count"], ["unknown"]):
                    found = saver.get_delta_channel_history(config=item.config, channels=channels)
                    assert found == BaseCheckpointSaver.get_delta_channel_history(
                        saver, config=item.config, channels=channels
                    )


def test_a_listing_keeps_no_one_from_writing(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with ours(path) as saver:
        for thread in "abcd":
            talk(chat(saver), thread)
        listing = saver.list(None)
        seen = [next(listing)]
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM checkpoints WHERE thread_id = 'a'")
            other.execute("COMMIT")
        saver.delete_thread("b")
        seen += listing
        left = {item.config["configurable"]["thread_id"] for item in seen[20:]}
        assert left == {"c"}  # a page of d and c was read before the deletions
