"""Server processes of these tests: started in a folder of their own, waited for, ended by their id.

What is served is in `scripted`, how it is spoken to in `ways`.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from tests.entrances import scripted

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds that anything here may take; far above what it does take."""


class Process:
    """A process that was started in a folder, which gets its database and what it prints."""

    def __init__(
        self, folder: Path, *command: str, url: str = "", env: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.url = url
        settings = {
            scripted.DATABASE: str(self.database),
            scripted.MARKER: str(self.marker),
            "PYTHONPATH": str(ROOT),
            **(env or {}),
        }
        with (folder / "log").open("wb") as log:
            self.popen = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log
            )

    @property
    def database(self) -> Path:
        """The file with the threads of this process."""
        return self.folder / "threads.db"

    @property
    def marker(self) -> Path:
        """The file in which the tool `hang` says that it runs, and in which process."""
        return self.folder / "hanging"

    @property
    def log(self) -> str:
        """Everything that the process has printed so far."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def until(self, true: Callable[[], bool]) -> None:
        """Return when something has become true; fail when the process ends before, or never."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert self.runs, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def until_it_answers(self) -> "Process":
        """Wait until the server of this process is ready."""
        self.until(self._answers)
        return self

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).is_success
        except httpx.TransportError:
            return False

    def end(self) -> None:
        """End it if it still runs, and wait for that."""
        self.popen.terminate()
        try:
            self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(PATIENCE)


def langserve(folder: Path) -> Process:
    """The scripted agent behind LangServe and uvicorn."""
    port = free_port()
    code = f"from tests.entrances import scripted; scripted.serve({port})"
    return Process(folder, sys.executable, "-c", code, url=f"http://127.0.0.1:{port}")


def dev_server(folder: Path) -> Process:
    """`langgraph dev` with our checkpointer: the scripted agent's graph and the shipped one."""
    module = scripted.__name__
    shipped = json.loads((ROOT / "langgraph.json").read_text())
    config = {
        **shipped,
        "graphs": {"agent": f"{module}:make_graph", "shipped": shipped["graphs"]["agent"]},
        "checkpointer": {"path": f"{module}.checkpointer"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    options = f"dev --no-browser --no-reload --port {port} --n-jobs-per-worker 4"
    command = ("-c", "from langgraph_cli.cli import cli; cli()", *options.split())
    env = {"LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    return Process(folder, sys.executable, *command, url=f"http://127.0.0.1:{port}", env=env)


def hanging_agent(folder: Path, thread: str) -> Process:
    """The agent by itself, on its way into the tool that never ends."""
    code = f"from tests.entrances import scripted; scripted.hang_in({thread!r})"
    return Process(folder, sys.executable, "-c", code)


def free_port() -> int:
    """A port of this machine that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
