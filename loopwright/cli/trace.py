"""`loopwright trace` and `loopwright replay`: what runs did, and whether they do it again.

How a trace is read is in `telemetry.reading`, how it is replayed in `loopwright.replay`.
"""

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.opening import Database, environment
from loopwright.cli.past import stored
from loopwright.cli.screen import Screen
from loopwright.cli.text import decoded
from loopwright.errors import UnknownThreadError
from loopwright.replay import Replayed
from loopwright.replay import replay as replay_runs
from loopwright.telemetry.reading import RecordedTrace, read
from loopwright.telemetry.stored import stored_runs
from loopwright.telemetry.tree import Branch, branches, note

TraceFile = Annotated[
    Path | None, typer.Option("--file", help="Trace file to look into.", show_default=False)
]


def trace(
    what: Annotated[str, typer.Argument(help="Id of a thread, or a trace file.")],
    file: TraceFile = None,
    database: Database = None,
) -> None:
    """Show the runs of a thread or of a trace file as a tree: turns, requests, tool calls.

    A thread is looked up in the trace file, if there is one, for its times; else in the database,
    which knows less.
    """
    name, screen = decoded(what), Screen()
    if file is None and Path(name).is_file():
        _print_trace(screen, read(name), None)
        return
    traced = file or environment().trace
    found = read(traced) if traced is not None and (file or traced.is_file()) else None
    if found is not None and any(run.thread == name for run in found.runs):
        _print_trace(screen, found, name)
        return
    if file is not None:
        raise UnknownThreadError(name)
    with stored(name, database) as agent:
        runs = stored_runs(agent, name)
    for run in runs:
        _print(screen, run)


def replay(
    file: Annotated[Path, typer.Argument(help="Trace file.")],
    run: Annotated[
        str | None, typer.Option(help="Id of a run, or its beginning.", show_default=False)
    ] = None,
) -> None:
    """Run a trace again, with the recorded answers and results, and tell the first difference.

    Exit code 0: all runs are equal; 1: one differs; 2: the file cannot be replayed.
    """
    done, screen = replay_runs(file, run), Screen()
    for one in done:
        _print_replayed(screen, one)
    if any(one.equal is False for one in done):
        raise typer.Exit(1)
    if not any(one.equal for one in done):
        raise typer.Exit(2)


def _print_trace(screen: Screen, trace: RecordedTrace, thread: str | None) -> None:
    for run in trace.runs:
        if thread is None or run.thread == thread:
            _print(screen, branches(run))
    if trace.lost or trace.full:
        screen.line(note(trace), "yellow")


def _print(screen: Screen, branch: Branch, first: str = "", rest: str = "") -> None:
    """A branch and what is below it, drawn in ASCII."""
    screen.line(first + branch.text, "bold" if not first else None)
    for number, below in enumerate(branch.below, 1):
        is_last = number == len(branch.below)
        _print(
            screen,
            below,
            rest + ("`- " if is_last else "|- "),
            rest + ("   " if is_last else "|  "),
        )


def _print_replayed(screen: Screen, done: Replayed) -> None:
    name = f"run {done.run[:8]} of thread {done.thread}"
    if done.skipped:
        screen.line(f"{name}: not replayed: {done.skipped}", "yellow")
        return
    if done.difference is None:
        screen.line(f"{name}: equal, {done.steps} steps, {done.recorded}", "green")
    else:
        screen.line(f"{name}: differs at {done.difference}", "red")
        if done.now and done.now != done.recorded:
            screen.line(f"   status: recorded {done.recorded}, now {done.now}")
    for text in done.notes:
        screen.line(f"   note: {text}", "yellow")
