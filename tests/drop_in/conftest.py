"""The dev server of these tests, started once with our checkpointer as people name it."""

import json
import sys
from collections.abc import Iterator

import pytest

from tests.drop_in import served
from tests.entrances.processes import Process, free_port


@pytest.fixture(scope="session")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """`langgraph dev` with both graphs; calls that block its event loop are errors."""
    folder = tmp_path_factory.mktemp("dev")
    graphs = {name: f"{served.__name__}:{name}" for name in ("ours", "theirs")}
    checkpointer = {"path": "loopwright.serve.studio.checkpointer"}
    config = {"dependencies": ["."], "graphs": graphs, "checkpointer": checkpointer}
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    options = f"dev --no-browser --no-reload --port {port} --n-jobs-per-worker 4"
    process = Process(
        folder,
        *(sys.executable, "-c", "from langgraph_cli.cli import cli; cli()", *options.split()),
        url=f"http://127.0.0.1:{port}",
        env={
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_NO_VERSION_CHECK": "true",
            "LOOPWRIGHT_DATABASE": str(folder / "threads.db"),
        },
    )
    yield process.until_it_answers()
    process.end()
