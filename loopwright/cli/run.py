"""`loopwright run`: one prompt, its answer on stdout, everything else on stderr.

With `--json` stdout holds one event per line instead.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from loopwright import queueing
from loopwright.agent import Agent
from loopwright.cli.following import exit_code, follow
from loopwright.cli.opening import (
    Database,
    Model,
    Thread,
    Trace,
    database_path,
    open_agent,
    thread_id,
)
from loopwright.cli.screen import RunView, Screen, ending
from loopwright.cli.text import decoded
from loopwright.errors import InputError
from loopwright.events import AnyEvent, to_json


class WhenBusy(Enum):
    """What becomes of a prompt for a thread that is being run, in the words of the command line."""

    error = "error"
    follow_up = "follow-up"


def run(
    prompt: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    model: Model = None,
    thread: Thread = None,
    database: Database = None,
    workspace: Annotated[Path, typer.Option(help="Folder that the file tools may read.")] = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every event as a line of JSON.")
    ] = False,
    when_busy: Annotated[
        WhenBusy, typer.Option(help="What to do if the thread is being run: refuse, or queue.")
    ] = WhenBusy.error,
    trace: Trace = None,
) -> None:
    """Send one prompt to an agent that can read the files of a folder."""
    text = sys.stdin.read() if prompt == "-" else decoded(prompt)
    if not text.strip():
        raise InputError("the prompt is blank: nothing was sent")
    name, path = thread_id(thread), database_path(database)
    opened = partial(open_agent, workspace=workspace, model=model, database=path, trace=trace)
    raise typer.Exit(asyncio.run(_run(opened, text, name, as_json, when_busy)))


async def _run(
    opened: Callable[[], Agent], prompt: str, thread: str | None, as_json: bool, when_busy: WhenBusy
) -> int:
    progress = Screen(stderr=True)
    show: Callable[[AnyEvent], None] = _print_json if as_json else RunView(Screen(), progress).show
    async with opened() as agent:
        name = thread or agent.thread
        way: queueing.WhenBusy = "error" if when_busy is WhenBusy.error else "follow_up"
        end = await follow(agent, prompt, name, show, way)
    if not as_json or end is None or exit_code(end):
        progress.line(f"{ending(end)}; thread {name}")
    return exit_code(end)


def _print_json(event: AnyEvent) -> None:
    # ASCII only: fits any encoding of stdout and holds no control characters.
    sys.stdout.write(json.dumps(to_json(event), ensure_ascii=True) + "\n")
    sys.stdout.flush()
