"""The serving faces: LangServe over HTTP (`app`, `server`), the dev server's graph (`studio`).

Each name is loaded at its first use: the dev server needs nothing of the extra `serve`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loopwright.errors import MissingExtraError

if TYPE_CHECKING:
    from loopwright.serve.app import create_app
    from loopwright.serve.server import run

__all__ = ["create_app", "run"]

_HOMES = {"create_app": "loopwright.serve.app", "run": "loopwright.serve.server"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("loopwright"):
            raise
        raise MissingExtraError("serving over HTTP", "serve") from error
