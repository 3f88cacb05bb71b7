"""`loopwright export` and `loopwright import`: a thread as a file of JSON lines, and back.

What is in the file, and what an import checks, is said in `state.thread_file`.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from loopwright import transfer
from loopwright.agent import Agent
from loopwright.cli.opening import Database, database_path, thread_id
from loopwright.cli.past import Given, Name, Thread, moment, stored
from loopwright.cli.screen import Screen
from loopwright.cli.text import clean, decoded


def export(
    thread: Thread,
    file: Annotated[Path | None, typer.Argument(help="The file; standard output without.")] = None,
    database: Database = None,
    at: Given = None,
) -> None:
    """Write a thread as JSON lines, with what is queued for it."""
    name = decoded(thread)
    with stored(name, database) as agent:
        agent.export(name, file or sys.stdout, at=moment(at))
    if file is not None:
        Screen().line(f"{clean(name)} is in {clean(str(file))}")


def import_(
    file: Annotated[Path, typer.Argument(help="A file that `export` has written.")],
    database: Database = None,
    name: Name = None,
) -> None:
    """Store an exported thread as a new one; prints its id and what was found."""
    path = database_path(database)
    if not path.exists():
        transfer.read(file)  # what is no thread makes no database
    with Agent(database=path) as agent:
        done = agent.import_(file, name=thread_id(name))
    screen = Screen()
    queued = f", {done.queued} queued" if done.queued else ""
    screen.line(f"{clean(done.thread)}  {done.messages} messages{queued}")
    if done.torn:
        screen.line("the end of the file was missing; what was there is stored")
    if done.repaired:
        mended = ", ".join(f"{name}: {count}" for name, count in done.repaired.items() if count)
        screen.line(f"repaired ({mended})")
