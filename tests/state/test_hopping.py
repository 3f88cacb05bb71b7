"""The async face: every method of a saver, and the same results as the sync one."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from loopwright.state.checkpointer import SqliteCheckpointer
from tests.support.graphs import on
from tests.support.savers import chat, deltas, grow, history, ours, talk, told

SYNC = [name for name in vars(BaseCheckpointSaver) if hasattr(BaseCheckpointSaver, f"a{name}")]


def test_the_methods_that_have_two_faces_are_known() -> None:
    assert {"get_tuple", "list", "put", "put_writes", "prune", "copy_thread"} <= set(SYNC)


@pytest.mark.parametrize("name", sorted(set(SYNC) - {"get"}))  # which is made of get_tuple
def test_both_faces_have_every_method_with_the_same_arguments(name: str) -> None:
    faces = [getattr(SqliteCheckpointer, face) for face in (name, f"a{name}")]
    bases = [getattr(BaseCheckpointSaver, face) for face in (name, f"a{name}")]
    assert all(face is not base for face, base in zip(faces, bases, strict=True))
    sync, hopping = (inspect.signature(face).parameters.values() for face in faces)
    assert [(p.name, p.kind, p.default) for p in sync] == [
        (p.name, p.kind, p.default) for p in hopping
    ]


@pytest.mark.anyio
async def test_the_async_face_stores_the_same(tmp_path: Path) -> None:
    with ours(tmp_path / "a.db") as saver, ours(tmp_path / "b.db") as other:
        talk(chat(other))
        graph = chat(saver)
        for number in range(2):
            given = {"messages": [HumanMessage("go", id=f"h{number}")]}
            await graph.ainvoke(given, on("t"), durability="sync")
        mine = [told(snapshot) async for snapshot in graph.aget_state_history(on("t"))]
        assert mine == history(chat(other))


@pytest.mark.anyio
async def test_both_faces_read_and_change_the_same(tmp_path: Path) -> None:
    with ours(tmp_path / "threads.db") as saver:
        await asyncio.to_thread(grow, deltas(saver))
        newest = await saver.aget_tuple(on("t"))
        assert newest is not None and repr(newest) == repr(saver.get_tuple(on("t")))
        found = await saver.aget(on("t"))
        assert found == saver.get(on("t")) == newest.checkpoint
        options: Any = {"filter": {"source": "loop"}, "limit": 25, "before": newest.config}
        listed = [repr(item) async for item in saver.alist(on("t"), **options)]
        assert listed == [repr(item) for item in saver.list(on("t"), **options)]
        assert len(listed) > 20  # more than a page
        wanted: Any = {"config": newest.config, "channels": ["log", "rare"]}
        deep = await saver.aget_delta_channel_history(**wanted)
        assert deep == saver.get_delta_channel_history(**wanted)
        await saver.acopy_thread("t", "copy")
        await saver.aprune(["t"])
        assert len([*saver.list(on("t"))]) == 1
        await saver.adelete_for_runs(["unknown"])
        await saver.adelete_thread("t")
        assert saver.thread_ids() == ["copy"]
