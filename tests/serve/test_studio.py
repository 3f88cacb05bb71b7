"""The graph that `langgraph.json` names. A server that runs it is started in `tests.entrances`."""

import asyncio
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from langgraph_cli.config import validate_config_file

from loopwright import DatabaseError
from loopwright.serve import studio

pytestmark = pytest.mark.anyio

CONFIG = Path(__file__).parents[2] / "langgraph.json"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A process of its own, as far as the factory can tell."""
    studio._only_agent.cache_clear()
    yield
    studio._only_agent.cache_clear()


def test_the_configuration_is_one_and_names_the_factory() -> None:
    config = validate_config_file(CONFIG)
    module, _, name = json.loads(CONFIG.read_text())["graphs"]["agent"]["path"].partition(":")
    assert getattr(import_module(module), name) is studio.make_graph
    assert config["dependencies"] == ["."]


async def test_all_requests_share_an_agent_whose_graph_has_no_checkpointer() -> None:
    first, second = await asyncio.gather(studio.make_graph(), studio.make_graph())
    assert first.checkpointer is second.checkpointer is None
    assert first.leases is second.leases
    assert first.dependencies is second.dependencies


async def test_the_environment_names_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "openai/some-model")
    graph = await studio.make_graph()
    assert graph.dependencies.settings.model == "openai/some-model"


async def test_our_checkpointer_is_on_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_DATABASE", str(tmp_path / "served.db"))
    async with studio.checkpointer() as saver:
        assert saver.database.path == str(tmp_path / "served.db")
        graph = (await studio.make_graph()).copy(update={"checkpointer": saver})
        await graph.ainvoke("hello", {"configurable": {"thread_id": "t"}})
        assert saver.thread_ids() == ["t"]
    with pytest.raises(DatabaseError, match="closed"):
        saver.thread_ids()


async def test_it_reads_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n- TODO: water the plants\n")
    monkeypatch.chdir(tmp_path)
    graph = await studio.make_graph()
    output = await graph.ainvoke("What is left to do in this folder?")
    assert "notes.md:3" in output["result"]["final_text"]
