"""`loopwright backup` and `loopwright linearize`: whole new files made of a database.

How they are made is said in `state.backup` and `state.rewriting`.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.screen import Screen
from loopwright.state.backup import backup as copy_database
from loopwright.state.rewriting import linearize as rewrite

INTERVAL = 1.0
"""Seconds between two lines that tell how far the work is."""

Source = Annotated[Path, typer.Argument(help="The database; it is only read.", metavar="DB")]


def backup(
    source: Source,
    target: Annotated[Path, typer.Argument(help="The new file.", metavar="TARGET")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite TARGET.")] = False,
) -> None:
    """Copy a database while others may write to it; the copy is checked before it is in place."""
    size = copy_database(source, target, overwrite=force)
    Screen().line(f"{target}: {megabytes(size)}, checked")


def linearize(
    source: Source,
    target: Annotated[
        Path | None, typer.Argument(help="The new file; DB with .linear before its ending.")
    ] = None,
) -> None:
    """Rewrite a file of LangGraph's SQLite saver so that each message is in it once.

    Killed at any moment, the same command goes on. Needs free space for the new file, which holds
    every message about twice.
    """
    target = target or source.with_name(f"{source.stem}.linear{source.suffix}")
    done = rewrite(source, target, progress=_Progress().tell)
    screen = Screen()
    screen.line(
        f"{target}: {done.threads} threads, {done.checkpoints} checkpoints, {done.writes} writes,"
        " each compared with the source"
    )
    screen.line(f"{megabytes(done.bytes_before)} before, {megabytes(done.bytes_after)} after")
    if done.left_out:
        screen.line(f"not of a saver, so not copied: {', '.join(done.left_out)}")


def megabytes(size: int) -> str:
    """A number of bytes as a reader takes it in."""
    return f"{size / 1e6:.1f} MB"


class _Progress:
    """Tells on stderr how far the work is, now and then."""

    def __init__(self) -> None:
        self._next = time.monotonic() + INTERVAL

    def tell(self, step: str, done: int, total: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + INTERVAL
            print(f"{step} {done} of {total} checkpoints", file=sys.stderr, flush=True)
