"""Where `loopwright serve` listens, whom it lets in, and how it is started and ended."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from loopwright import ConfigurationError
from loopwright.serve import server
from tests.entrances.processes import PATIENCE, ROOT, Process


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_local_address_is_served_under_local_names_only(host: str) -> None:
    assert server._hosts(host, allow_remote=False) == server.LOCAL_NAMES


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "127.1", ""])
def test_an_open_address_is_refused_unless_allowed(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match="--allow-remote") as refused:
        server._hosts(host, allow_remote=False)
    assert refused.value.field == "host"
    assert capsys.readouterr().err == ""
    assert server._hosts(host, allow_remote=True) is None
    assert capsys.readouterr().err.startswith(f"warning: listening on {host}: ")


def test_the_command_serves_the_files_of_a_folder_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n- TODO: water the plants\n")
    command = [sys.executable, "-m", "loopwright", "serve", "--port", "0"]
    process = Process(tmp_path, *command, "--database", str(tmp_path / "threads.db"))
    address = re.compile(r"http://127\.0\.0\.1:\d+")
    process.until(lambda: bool(address.search(process.log)))
    url = address.findall(process.log)[0]
    response = httpx.post(
        f"{url}/invoke",
        json={"input": "What is left to do in this folder?"},
        headers={"X-Thread-Id": "plants"},
        timeout=PATIENCE,
    )
    result = response.raise_for_status().json()["output"]["result"]
    assert result["thread"] == "plants"
    assert "notes.md:3" in result["final_text"]
    process.popen.send_signal(signal.SIGINT)
    assert process.popen.wait(PATIENCE) in (0, 130), process.log
    assert "Traceback" not in process.log
    assert process.database.is_file()


def test_the_command_refuses_an_open_address_with_one_line(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "loopwright", "serve", "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={"LOOPWRIGHT_DATABASE": str(tmp_path / "x.db"), "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert "--allow-remote" in run.stderr
