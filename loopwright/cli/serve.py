"""`loopwright serve`: starts the HTTP server, which is `loopwright.serve`."""

from pathlib import Path
from typing import Annotated

import typer

from loopwright import serve as server
from loopwright.cli.opening import Database, Model, database_path, open_agent


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    model: Model = None,
    database: Database = None,
    workspace: Annotated[Path, typer.Option(help="Folder that the file tools may read.")] = Path(),
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines reach it; there is no login.")
    ] = False,
) -> None:
    """Serve an agent that can read the files of a folder over HTTP."""
    run = server.run  # before anything is opened: the extra may not be installed
    with open_agent(workspace=workspace, model=model, database=database_path(database)) as agent:
        run(agent, host=host, port=port, allow_remote=allow_remote)
