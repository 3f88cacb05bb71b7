"""The commands of the command line, and the options that all of them have.

What a command does lives in its own module; what a failure becomes, in the package's `main`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from loopwright.cli import (
    auth,
    backup,
    demo,
    doctor,
    graph,
    past,
    run,
    serve,
    steering,
    threads,
    trace,
    transfer,
)

app = typer.Typer(
    help="Loopwright: an agent runtime on LangGraph.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
"""Every command; call it with `obj=Invocation()`."""

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "run": run.run,
    "threads": threads.threads,
    "show": threads.show,
    "history": past.history,
    "fork": past.fork,
    "rewind": past.rewind,
    "delete": past.delete,
    "prune": past.prune,
    "export": transfer.export,
    "import": transfer.import_,
    "steer": steering.steer,
    "follow-up": steering.follow_up,
    "abort": steering.abort,
    "trace": trace.trace,
    "replay": trace.replay,
    "doctor": doctor.doctor,
    "auth": auth.auth,
    "backup": backup.backup,
    "linearize": backup.linearize,
    "graph": graph.graph,
    "serve": serve.serve,
}
for name, command in COMMANDS.items():
    app.command(name)(command)


@dataclass
class Invocation:
    """What the options before the command say."""

    debug: bool = False


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"loopwright {version('loopwright')}")
        except PackageNotFoundError:
            typer.echo("loopwright, from a folder that is not installed")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a failure.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    context.obj.debug = debug
