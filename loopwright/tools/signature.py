"""The parameters of a plain function: their JSON schema, and arguments turned into what it takes.

Descriptions come from `docstrings`; what the function returns is looked at in `results`.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from loopwright.errors import ConfigurationError
from loopwright.tools import docstrings
from loopwright.tools.contract import JsonObject, ToolContext
from loopwright.tools.injection import injection_of


@dataclass(frozen=True)
class Signature:
    """What can be given to a function as JSON, and how to call it with that."""

    function: Callable[..., Any]
    parameters: inspect.Signature
    description: str
    schema: JsonObject
    model: type[BaseModel]
    fields: Mapping[str, str]
    """Field of the model -> parameter of the function."""
    context: str | None
    """The parameter that gets the ToolContext."""

    def bound(self, arguments: JsonObject, context: ToolContext) -> Callable[[], Any]:
        """The function with its arguments, ready to be called.

        Objects, enums and the like are made from the JSON; what is not given keeps the function's
        own default. Raises pydantic's ValidationError for arguments that do not fit.
        """
        model = self.model.model_validate(arguments)
        values = {
            parameter: getattr(model, field)
            for field, parameter in self.fields.items()
            if field in model.model_fields_set or self._default_is_a_field(parameter)
        }
        if self.context:
            values[self.context] = context
        bound = inspect.BoundArguments(self.parameters, typing.cast(Any, values))
        return functools.partial(self.function, *bound.args, **bound.kwargs)

    def _default_is_a_field(self, parameter: str) -> bool:
        """`x: int = Field(5)`: the function's own default would be the Field, not the 5."""
        return isinstance(self.parameters.parameters[parameter].default, FieldInfo)


def read(tool: str, function: Callable[..., Any]) -> Signature:
    """Read the parameters and the docstring of `function`, which becomes the tool of this name.

    A description in the hint comes before the docstring's. Raises ConfigurationError, naming tool
    and parameter, for a parameter that cannot be given as JSON.
    """
    signature = _signature(tool, function)
    description, described = docstrings.read(_docstring(function), signature.parameters)
    hints = _hints(tool, function)
    context = None
    fields: dict[str, str] = {}
    definitions: dict[str, Any] = {}
    for index, parameter in enumerate(_open(function, signature)):
        hint = hints.get(parameter.name, parameter.empty)
        if _is_context(hint):
            context = parameter.name
            continue
        _check(tool, parameter, hint)
        # Numbered fields with aliases, since pydantic refuses names such as `schema` and `_x`.
        fields[f"p{index}"] = parameter.name
        definitions[f"p{index}"] = (
            _described(hint, parameter, described.get(parameter.name)),
            ... if parameter.default is parameter.empty else parameter.default,
        )
    model, schema = _model(tool, definitions)
    return Signature(function, signature, description, schema, model, fields, context)


def target(function: Any) -> Any:
    """The function behind partials."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _docstring(function: Callable[..., Any]) -> str | None:
    """The docstring of the function, or of a callable object's `__call__`, else of its class."""
    source = target(function)
    if inspect.isroutine(source):
        return inspect.getdoc(source)
    return inspect.getdoc(source.__call__) or inspect.getdoc(source)


def _signature(tool: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise _refusal(tool, f"its signature cannot be read ({error})") from error


def _open(function: Callable[..., Any], signature: inspect.Signature) -> list[inspect.Parameter]:
    """The parameters that are still to be given: a partial's own arguments are hidden."""
    given = function.keywords if isinstance(function, functools.partial) else {}
    return [one for one in signature.parameters.values() if one.name not in given]


def _hints(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The hints of the parameters only: one of the return value may name what is not imported."""
    source = target(function)
    if not inspect.isroutine(source):
        source = source.__call__
    source = inspect.unwrap(source)
    annotations = dict(getattr(source, "__annotations__", {}))
    annotations.pop("return", None)
    holder = type("Holder", (), {"__annotations__": annotations})
    try:
        return typing.get_type_hints(
            holder, globalns=getattr(source, "__globals__", {}), include_extras=True
        )
    except (NameError, TypeError, SyntaxError) as error:
        raise _refusal(tool, f"a type hint cannot be resolved ({error})") from error


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or any(_is_context(part) for part in typing.get_args(hint))


def _check(tool: str, parameter: inspect.Parameter, hint: Any) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise _refusal(
            tool, f"{parameter} takes any arguments: give every parameter a name and a type hint"
        )
    if hint is parameter.empty:
        raise _refusal(tool, f"parameter {parameter.name!r} has no type hint")
    if injection_of(hint):
        raise _refusal(
            tool,
            f"parameter {parameter.name!r} is one that LangChain injects: take a ToolContext "
            "instead, or make it a langchain tool with langchain_core.tools.tool",
        )


def _described(hint: Any, parameter: inspect.Parameter, text: str | None) -> Any:
    marks = getattr(hint, "__metadata__", ())
    own = [mark for mark in (*marks, parameter.default) if isinstance(mark, FieldInfo)]
    texts = [mark for mark in marks if isinstance(mark, str)]
    alias = next((field.alias for field in own if field.alias), parameter.name)
    if any(field.description for field in own):
        return Annotated[hint, Field(alias=alias)]
    return Annotated[hint, Field(alias=alias, description=next(iter(texts), text))]


def _model(tool: str, definitions: dict[str, Any]) -> tuple[type[BaseModel], JsonObject]:
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)
        schema = model.model_json_schema(schema_generator=_SchemaWriter)
    except PydanticUserError as error:
        raise _refusal(tool, f"a parameter has no JSON form ({error.message})") from error
    schema.pop("title", None)
    return model, schema


def _refusal(tool: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"tool {tool!r}: {reason}", field="tools")


class _SchemaWriter(GenerateJsonSchema):
    """Writes no titles, which only repeat names, and leaves a default out that has no JSON form."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's own

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
