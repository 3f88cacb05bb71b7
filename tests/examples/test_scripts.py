"""The scripts of `examples/`, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{ROOT}"}


def run(code_or_path: str, *arguments: str, folder: Path) -> str:
    """What a script prints that ends well."""
    done = subprocess.run(
        [
            sys.executable,
            *([] if code_or_path.endswith(".py") else ["-c"]),
            code_or_path,
            *arguments,
        ],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_agent_reads_the_sample_and_goes_on(tmp_path: Path) -> None:
    printed = run(str(ROOT / "examples/first_agent.py"), folder=tmp_path)
    assert "-> list_files" in printed
    assert "README.md:12: - measure the temperature in box 4" in printed
    assert printed.rstrip().splitlines()[-1].startswith("completed; the thread has ")


def test_the_first_agent_reads_a_folder_that_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n- TODO: water the plants\n")
    printed = run(str(ROOT / "examples/first_agent.py"), str(tmp_path), folder=tmp_path)
    assert "notes.md:3" in printed


@pytest.mark.anyio
async def test_the_served_agent_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n- TODO: water the plants\n")
    monkeypatch.chdir(tmp_path)
    script = run_path(str(ROOT / "examples/serve_agent.py"))
    async with script["agent"] as agent:
        transport = httpx.ASGITransport(script["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            question = {"input": "What is left to do in this folder?"}
            response = await client.post("/invoke", json=question)
    assert "notes.md:3" in response.json()["output"]["result"]["final_text"]
    names = agent.graph.dependencies.tools.names()
    assert names == ["list_files", "read_file", "search_text", "days_until"]
