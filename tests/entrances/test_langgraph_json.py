"""The graph of `langgraph.json` in a started dev server, with the offline model."""

from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.entrances.processes import PATIENCE
from tests.entrances.ways import ByDevServer, prompt

pytestmark = pytest.mark.anyio


async def test_it_answers_about_the_folder_of_the_server(by_dev_server: ByDevServer) -> None:
    (by_dev_server.process.folder / "notes.md").write_text("# Notes\n\n- TODO: water the plants\n")
    async with get_client(url=by_dev_server.url, timeout=PATIENCE) as client:
        given = prompt("What is left to do in this folder?")
        output: Any = await client.runs.wait(None, "shipped", input=given)
    assert "notes.md:3" in output["result"]["final_text"]
    assert "BlockingError" not in by_dev_server.process.log


async def test_its_context_limits_a_run(by_dev_server: ByDevServer) -> None:
    async with get_client(url=by_dev_server.url, timeout=PATIENCE) as client:
        given = prompt("What is left to do in this folder?")
        context: Any = {"max_turns": 1, "tools": ["list_files"]}
        output: Any = await client.runs.wait(None, "shipped", input=given, context=context)
        (assistant,) = await client.assistants.search(graph_id="shipped")
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert (output["result"]["status"], output["result"]["turns"]) == ("limit", 1)
    offered = (schemas["context_schema"] or {})["properties"]
    assert {"model", "system_prompt", "tools", "max_turns"} <= set(offered)
