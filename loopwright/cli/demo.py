"""`loopwright demo`: the main job on real files, without a key and without a network.

The same run with a prompt and output of one's own is `run`; what `--crash` shows is in `crash`.
"""

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

import loopwright
from loopwright.cli.crash import demonstrate
from loopwright.cli.following import exit_code, follow
from loopwright.cli.opening import (
    Database,
    Model,
    Thread,
    database_path,
    open_agent,
    stored_messages,
    thread_id,
)
from loopwright.cli.screen import RunView, Screen, ending
from loopwright.errors import ConfigurationError

QUESTION = "What is in this folder and what is left to do in it?"
SAMPLE = Path(loopwright.__file__).parent / "sample"
OFFLINE = "offline"


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder to look at; default: a packaged sample.")
    ] = None,
    thread: Thread = None,
    database: Database = None,
    model: Model = OFFLINE,
    crash: Annotated[
        bool, typer.Option("--crash", help="Show a kill between a tool's effect and its record.")
    ] = False,
) -> None:
    """Ask an agent what is in a folder and what is left to do in it."""
    if crash:
        if folder or thread or model != OFFLINE:
            raise ConfigurationError(
                "demo --crash has a task of its own: give it no folder, thread or model",
                field="crash",
            )
        raise typer.Exit(demonstrate(database_path(database)))
    code = asyncio.run(_demo(folder, thread_id(thread), database_path(database), model or OFFLINE))
    raise typer.Exit(code)


async def _demo(folder: Path | None, thread: str | None, database: Path, model: str) -> int:
    screen = Screen()
    async with open_agent(workspace=folder or SAMPLE, model=model, database=database) as agent:
        stored = stored_messages(agent, thread)
        thread = thread or agent.thread
        _introduce(screen, folder or SAMPLE, model, thread, stored)
        end = await follow(agent, QUESTION, thread, RunView(screen, screen).show)
    screen.line()
    screen.line(f"status    {ending(end)}", "bold")
    screen.line(f"thread    {thread}")
    screen.line(f"database  {database}")
    screen.line(f"continue  {_again(folder, model, thread, database)}")
    return exit_code(end)


def _introduce(screen: Screen, folder: Path, model: str, thread: str, stored: int) -> None:
    kind = "fixed rules, not a language model" if model == OFFLINE else "a language model"
    what = f"continues after {stored} messages" if stored else "new"
    screen.line(f"model     {model} ({kind})", "bold")
    screen.line(f"folder    {folder}")
    screen.line(f"thread    {thread} ({what})")
    screen.line(f"question  {QUESTION}")
    screen.line()


def _again(folder: Path | None, model: str, thread: str, database: Path) -> str:
    words = ["loopwright", "demo", *([str(folder)] if folder else [])]
    words += [] if model == OFFLINE else ["--model", model]
    return shlex.join([*words, "--thread", thread, "--database", str(database)])
