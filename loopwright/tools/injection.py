"""Which parameters of a tool LangChain and LangGraph fill in, and what they are filled with.

The model neither sees nor sets them. The rest of a langchain tool is read in `langchain`.
"""

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from langchain_core.tools.base import get_all_basemodel_annotations
from langchain_core.utils.pydantic import get_fields
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.runtime import Runtime, get_runtime

from loopwright.tools.contract import ToolContext

Kind = Literal["state", "store", "call_id", "runtime", "config", "unknown"]

_MARKERS: tuple[tuple[type[InjectedToolArg], Kind], ...] = (
    (InjectedState, "state"),
    (InjectedStore, "store"),
    (InjectedToolCallId, "call_id"),
    (InjectedToolArg, "unknown"),
)


@dataclass(frozen=True)
class Injection:
    """What goes into one parameter. `field` is the state's field, None for the whole state.

    `unknown` is a parameter that only its author could fill: it keeps its default.
    """

    kind: Kind
    field: str | None = None
    required: bool = True


def injection_of(annotation: Any) -> Injection | None:
    """The injection that a type hint asks for; looks through Annotated, unions and generics."""
    if annotation is RunnableConfig:
        return Injection("config")
    origin = typing.get_origin(annotation) or annotation
    if inspect.isclass(origin) and issubclass(origin, ToolRuntime):
        return Injection("runtime")
    inner = (_marked(part) or injection_of(part) for part in typing.get_args(annotation))
    return next((found for found in inner if found), None)


def _marked(marker: Any) -> Injection | None:
    """Both `InjectedState` and `InjectedState("field")` are used as marks."""
    for kind, name in _MARKERS:
        if isinstance(marker, kind) or (inspect.isclass(marker) and issubclass(marker, kind)):
            return Injection(name, getattr(marker, "field", None))
    return None


def injections(tool: BaseTool) -> dict[str, Injection]:
    """The injected parameters of a tool, by name, from its schema and from its function."""
    hints: dict[str, Any] = {}
    optional: set[str] = set()
    for function in functions(tool):
        hints |= _hints(function)
        parameters = inspect.signature(function).parameters.values()
        optional |= {p.name for p in parameters if p.default is not p.empty}
    if tool.args_schema is not None and not isinstance(tool.args_schema, dict):
        hints |= get_all_basemodel_annotations(tool.args_schema)
        fields = get_fields(tool.args_schema)
        optional |= {name for name, field in fields.items() if not _is_required(field)}
    found = {name: injection_of(hint) for name, hint in hints.items()}
    return {
        name: Injection(one.kind, one.field, required=name not in optional)
        for name, one in found.items()
        if one and one.kind != "config"  # langchain fills that in by itself
    }


def functions(tool: BaseTool) -> list[Callable[..., Any]]:
    """The functions that hold the tool's body: what it wraps, else its own `_run` and `_arun`."""
    wrapped = [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
    return [f for f in wrapped if callable(f)] or [tool._run, tool._arun]


def _is_required(field: Any) -> bool:
    """A field of pydantic 2 or of its version 1."""
    if hasattr(field, "is_required"):
        return bool(field.is_required())
    return bool(field.required)


def _hints(function: Any) -> dict[str, Any]:
    """The hints that can be resolved, each by itself: one may name what only a checker imports."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    found: dict[str, Any] = {}
    for name, raw in getattr(function, "__annotations__", {}).items():
        holder = type("Holder", (), {"__annotations__": {name: raw}})
        names = getattr(function, "__globals__", {})
        with contextlib.suppress(NameError, TypeError, SyntaxError, AttributeError):
            found |= typing.get_type_hints(holder, globalns=names, include_extras=True)
    return found


def injected(
    wanted: Mapping[str, Injection], context: ToolContext, config: RunnableConfig
) -> dict[str, Any]:
    """The value of every injected parameter that has one.

    Raises LookupError for a required one that this run cannot fill.
    """
    values: dict[str, Any] = {}
    for name, injection in wanted.items():
        if injection.kind == "state" and injection.field is None:
            values[name] = dict(context.state)
        elif injection.kind == "state" and injection.field in context.state:
            values[name] = context.state[str(injection.field)]
        elif injection.kind == "call_id":
            values[name] = context.call_id
        elif injection.kind == "runtime":
            values[name] = _tool_runtime(context, config)
        elif injection.kind == "store" and context.store is not None:
            values[name] = context.store
        elif injection.required:
            raise LookupError(_missing(name, injection))
    return values


def _missing(name: str, injection: Injection) -> str:
    if injection.kind == "state":
        return f"the tool needs the state's field {injection.field!r}, which it has not"
    if injection.kind == "store":
        return "the tool needs a store: give the agent one"
    return f"nothing fills the tool's injected parameter {name!r}: give it a default"


def _tool_runtime(context: ToolContext, config: RunnableConfig) -> ToolRuntime[Any, Any]:
    runtime = _graph_runtime()
    return ToolRuntime(
        state=dict(context.state),
        context=runtime.context,
        config=config,
        stream_writer=runtime.stream_writer,
        tool_call_id=context.call_id,
        store=context.store,
        execution_info=runtime.execution_info,
        server_info=runtime.server_info,
    )


def _graph_runtime() -> Runtime[Any]:
    """The runtime of the graph around the call; outside of one, an empty one."""
    try:
        return get_runtime() or Runtime()
    except (RuntimeError, KeyError):
        return Runtime()
