"""`loopwright auth`: whether a model's server takes the key that a run would send.

Exit codes: 0 it does, 1 it refuses it, 2 it could not be asked (as of every failure).
"""

import asyncio
from typing import Annotated

import typer

from loopwright.cli.screen import Screen
from loopwright.cli.text import one_line
from loopwright.errors import ModelError
from loopwright.providers.models import Models
from loopwright.settings import Environment

WIDTH = 500


def auth(
    model: Annotated[
        str | None, typer.Argument(help="The model; default: LOOPWRIGHT_MODEL.")
    ] = None,
) -> None:
    """Ask a model's provider whether it takes the key. Costs one token at most."""
    environment = Environment()
    name = environment.model if model is None else model
    try:
        asyncio.run(_validated(name, environment))
    except ModelError as error:
        if error.kind != "auth":
            raise
        Screen(stderr=True).line(one_line(f"{name}: refused: {error}", WIDTH))
        raise typer.Exit(1) from None
    Screen().line(one_line(f"{name}: ok", WIDTH))


async def _validated(name: str, environment: Environment) -> None:
    models = Models(environment)
    try:
        await models.resolve(name).validate_auth()
    finally:
        await models.aclose()
