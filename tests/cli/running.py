"""Runs the command line as a user does: a process, its streams, its exit code."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright import Agent
from loopwright.tools.files import FILE_TOOLS

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-W", "error", "-m", "loopwright")
SECONDS = 90


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def said(self, name: str) -> str:
        """What the demo says under this name, such as `thread`."""
        line = next(line for line in self.out.split("\n") if line.startswith(f"{name} "))
        return line.removeprefix(name).strip()


def environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a user without settings or keys, whose home is `home`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LOOPWRIGHT_", "LANG", "LC_", "XDG_", "PYTHON"))
        and not name.endswith("_API_KEY")
    }
    return {
        **kept,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        **variables,
    }


def begin(database: Path, thread: str, *prompts: str) -> None:
    """Store a thread, without a process of its own."""
    folder = database.parent
    with Agent("offline", FILE_TOOLS, database=database, workspace=folder, thread=thread) as agent:
        for prompt in prompts:
            agent.run(prompt)


def stored(database: Path, thread: str) -> list[str]:
    """The texts of a stored thread."""
    with Agent("offline", database=database, thread=thread) as agent:
        return [message.text for message in agent.messages()]


def loopwright(
    home: Path, *words: str | Path, command: Sequence[str] = COMMAND, given: str = "", **env: str
) -> Ended:
    """Run a command to its end, with `home` as home and current folder."""
    done = subprocess.run(
        [*command, *map(str, words)],
        input=given.encode(),
        capture_output=True,
        cwd=home,
        env=environment(home, **env),
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
