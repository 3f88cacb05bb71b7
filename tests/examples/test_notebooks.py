"""The notebooks of `examples/`, executed in a kernel that reaches nothing but this machine."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
KERNEL = "this-python"

Execute = Callable[[Any], dict[str, Any]]

# nbformat has no types of its own.
read: Any = nbformat.read
validate: Any = nbformat.validate
from_dict: Any = nbformat.from_dict


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """Runs a notebook with this Python; gives the outputs of each cell by the cell's id."""
    spec = tmp_path / "jupyter" / "kernels" / KERNEL
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": KERNEL, "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(kernel))
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{ROOT}")
    for name in ("JUPYTER_PATH", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "here").mkdir()

    def run(notebook: Any) -> dict[str, Any]:
        folder = {"metadata": {"path": str(tmp_path / "here")}}
        NotebookClient(notebook, timeout=60, kernel_name=KERNEL, resources=folder).execute()
        return {cell["id"]: cell.get("outputs", []) for cell in notebook["cells"]}

    return run


def text(outputs: Any, kind: str = "text/plain") -> str:
    """Everything that a cell has printed or shown, as text of one kind."""
    shown = [o["text"] if o["output_type"] == "stream" else o["data"][kind] for o in outputs]
    return "".join(shown)


def test_the_first_agent(execute: Execute) -> None:
    shown = execute(read(ROOT / "examples/first_agent.ipynb", as_version=4))
    assert "README.md:12: - measure the temperature in box 4" in text(shown["answer"])
    assert "completed (answered)" in text(shown["prompt"], "text/html")
    assert "-> search_text" in text(shown["stream"])
    assert "notes/spring.md:6" in text(shown["stream"])
    assert text(shown["stream"]).rstrip().splitlines()[-1].startswith("completed after 2 turns")
    asked = [line for line in text(shown["history"]).splitlines() if line.startswith("human")]
    assert [line.split(" ", 1)[1].strip()[1:10] for line in asked] == ["What is i", "Search fo"]
    (drawing,) = shown["graph"]
    assert set(drawing["data"]) == {"text/plain", "text/markdown"}
    assert "queue_drain -.-> model" in drawing["data"]["text/markdown"]
    assert "('tool', '42')" in text(shown["tool"])
    assert "'name': 'add'" in text(shown["requests"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_outputs_are_not_stored(path: Path) -> None:
    notebook = read(path, as_version=4)
    validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not [cell.id for cell in code if cell.outputs or cell.execution_count is not None]


def test_the_kernel_has_no_network(execute: Execute) -> None:
    source = """
import socket
for host in ("192.0.2.1", "example.com"):
    try:
        socket.create_connection((host, 80), timeout=5)
    except OSError as error:
        print(error)
"""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": []}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    assert text(execute(from_dict(notebook))["a"]).splitlines() == [
        "the network is off: no look-up of 192.0.2.1",
        "the network is off: no look-up of example.com",
    ]
