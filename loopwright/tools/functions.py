"""A Tool from a plain typed function, and the decorator that says more about one.

The schema of its parameters is made in `signature`, its return value is read in `results`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from pydantic import ValidationError

from loopwright.tools import signature
from loopwright.tools.arguments import InvalidArguments, model_faults
from loopwright.tools.calling import call
from loopwright.tools.contract import (
    Effects,
    ExecutionMode,
    JsonObject,
    Tool,
    ToolContext,
    ToolResult,
)
from loopwright.tools.results import as_result

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = "__loopwright_tool__"


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """What the decorator said; what is None comes from the function itself."""

    name: str | None = None
    description: str | None = None
    execution_mode: ExecutionMode | None = None
    effects: Effects = "unsafe"


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    execution_mode: ExecutionMode | None = None,
    effects: Effects = "unsafe",
) -> Callable[[F], F]: ...
def tool(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Say how a function is offered as a tool; the function itself stays as it was.

    `name` and `description` default to the function's own name and docstring. `effects` says what
    running it twice would mean (`none`, `idempotent`, `unsafe`), `execution_mode="sequential"`
    keeps its whole batch from running in parallel. A function without the decorator is a tool too.
    """
    if function is not None:
        setattr(function, _OPTIONS, ToolOptions())
        return function

    def decorate(decorated: F) -> F:
        setattr(decorated, _OPTIONS, ToolOptions(**options))
        return decorated

    return decorate


def function_tool(function: Callable[..., Any], **overrides: Any) -> Tool:
    """A Tool from a typed function: sync or async, a method, a partial or a callable object.

    The JSON schema comes from the type hints, the descriptions from Annotated, Field or the
    docstring (Google, NumPy or Sphinx). A parameter of type ToolContext gets the context and is
    hidden from the model. A sync function runs in a thread, and is left to itself when the run is
    cancelled. `overrides` are the options of `tool` and come before those of the decorator.

    Raises ConfigurationError, naming the tool, for an option that is none, and with the parameter
    for *args, **kwargs, a missing type hint or a type that has no JSON form.
    """
    options = replace(getattr(function, _OPTIONS, ToolOptions()), **overrides)
    name = _name(function) if options.name is None else options.name
    read = signature.read(name, function)

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        try:
            body = read.bound(arguments, context)
        except ValidationError as error:
            raise InvalidArguments(name, model_faults(error)) from error
        return as_result(await call(body, context))

    return Tool(
        name=name,
        description=read.description if options.description is None else options.description,
        parameters=read.schema,
        execute=execute,
        execution_mode=options.execution_mode,
        effects=options.effects,
    )


def _name(function: Any) -> str:
    target = signature.target(function)
    return str(getattr(target, "__name__", None) or type(target).__name__)
