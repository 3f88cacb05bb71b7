"""From options of the command line to an open agent: which database, which folder, which thread.

How its run is followed lives in `following`.
"""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from loopwright.agent import Agent
from loopwright.cli.text import decoded
from loopwright.errors import ConfigurationError, UnknownThreadError
from loopwright.prompts import FILES
from loopwright.settings import Environment
from loopwright.tools.files import FILE_TOOLS

Thread = Annotated[str | None, typer.Option(help="Thread to continue or to begin.")]
Database = Annotated[Path | None, typer.Option(help="File with the threads.", show_default=False)]
Model = Annotated[str | None, typer.Option(help="offline (rules only, no key), or provider/model.")]

Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace", help="File to append every step to, as a line of JSON.", show_default=False
    ),
]


def environment() -> Environment:
    """The process's environment. Raises ConfigurationError for a variable that makes no sense."""
    try:
        return Environment()
    except ValidationError as error:
        first = error.errors()[0]
        name = "LOOPWRIGHT_" + "_".join(str(part) for part in first["loc"]).upper()
        raise ConfigurationError(f"{name}: {first['msg']}", field=name) from error


def database_path(given: Path | None) -> Path:
    """The file given, or the one of the environment."""
    return (given or environment().database_path()).expanduser().absolute()


def open_agent(
    *, workspace: Path, model: str | None, database: Path, trace: Path | None = None
) -> Agent:
    """An agent with the file tools over a folder. Raises ConfigurationError if it is none."""
    if not workspace.is_dir():
        what = "is not a folder" if workspace.exists() else "does not exist"
        raise ConfigurationError(f"workspace {str(workspace)!r} {what}", field="workspace")
    return Agent(
        model=model or environment().model,
        tools=FILE_TOOLS,
        system_prompt=FILES,
        database=database,
        workspace=workspace,
        trace=trace,
    )


def stored_messages(agent: Agent, thread: str | None) -> int:
    """How many messages a thread has; 0 for one that does not exist yet."""
    if thread is None:
        return 0
    try:
        return len(agent.messages(thread))
    except UnknownThreadError:
        return 0


def thread_id(given: str | None) -> str | None:
    """A thread option as an id. Raises ConfigurationError for a blank one."""
    if given is None:
        return None
    if not given.strip():
        raise ConfigurationError("thread is blank: give it a name", field="thread")
    return decoded(given)
