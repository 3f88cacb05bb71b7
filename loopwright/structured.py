"""The final answer of a run as a value: the type or schema it must have, and how it is checked.

What a run does about an answer that does not fit is in `judging`.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, Self, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import to_json
from typing_extensions import TypeVar

from loopwright.errors import ConfigurationError
from loopwright.forms import OutputForm, OutputMode
from loopwright.providers.arguments import ArgumentsError, parse_object
from loopwright.providers.contract import SchemaSupport
from loopwright.settings import Settings
from loopwright.tools.arguments import ArgumentRules, InvalidArguments, model_faults, validate
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolRegistry, ToolResult

T = TypeVar("T", default=Any)

ACCEPTED = "output"
"""The key in the details of the tool's result; its value is the answer as JSON."""

TAKEN = "The final answer was taken."


class Output(Generic[T]):
    """What a run has to answer with: `Agent(output=Output(Answer, mode="tool"))`.

    `kind` is a type that pydantic knows (a model, dataclass, TypedDict, `list[int]`), or a JSON
    schema as a dict; with a schema the answer is JSON values. The rest is said in `OutputForm`.
    Raises ConfigurationError for a type without a JSON schema.
    """

    def __init__(
        self,
        kind: type[T] | Mapping[str, Any],
        *,
        mode: OutputMode = "auto",
        name: str | None = None,
        description: str | None = None,
        repairs: int = 2,
    ) -> None:
        self._adapter = None if isinstance(kind, Mapping) else _adapter(kind)
        schema = deepcopy(dict(kind)) if isinstance(kind, Mapping) else _schema(kind)
        words = {"name": name, "description": description}
        given: Any = {word: text for word, text in words.items() if text is not None}
        self.form = OutputForm(schema=schema, mode=mode, repairs=repairs, **given)

    @classmethod
    def of(cls, kind: "OutputKind[T]") -> Self:
        """The output that a caller means by a type or a schema."""
        return kind if isinstance(kind, cls) else cls(kind)  # type: ignore[arg-type]

    @classmethod
    def under(cls, form: OutputForm, known: "Output[Any] | None") -> Self:
        """The output of a run with this form. Its answers are of the known output's type if that
        has the same schema, else JSON values.
        """
        made = cls(form.schema)
        made.form = form
        if known is not None and known.form.schema == form.schema:
            made._adapter = known._adapter
        return made

    def load(self, value: Any) -> T:
        """The JSON of an accepted answer as a value of the type."""
        loaded: T = value if self._adapter is None else self._adapter.validate_json(to_json(value))
        return loaded

    def read(self, text: str, rules: ArgumentRules) -> Any:
        """The answer that a text spells, coerced to the schema, as JSON. Raises Misfit."""
        try:
            checked = validate(self.tool, parse_object(text), rules)
        except (ArgumentsError, InvalidArguments) as error:
            raise Misfit(str(error)) from error
        return self._accepted(checked)

    def _accepted(self, sent: JsonObject) -> Any:
        """The answer in what fits the schema, as JSON. Raises Misfit if the type refuses it."""
        answer = self.form.opened(sent)
        try:
            self.load(answer)
        except ValidationError as error:
            faults = "\n".join(f"- {fault}" for fault in model_faults(error))
            raise Misfit(f"Validation failed for {self.form.name!r}:\n{faults}") from error
        return answer

    @cached_property
    def tool(self) -> Tool:
        """The tool that takes the answer. What is wrong with one is its error result."""

        async def take(arguments: JsonObject, context: ToolContext) -> ToolResult:
            try:
                answer = self._accepted(arguments)
            except Misfit as error:
                return ToolResult(content=str(error), is_error=True)
            return ToolResult(content=TAKEN, details={ACCEPTED: answer})

        return Tool(
            name=self.form.name,
            description=self.form.description,
            parameters=self.form.sent,
            execute=take,
            effects="none",
            repeatable=True,  # its repairs are what bounds it
        )


def settled_form(
    settings: Settings, default: Output[Any] | None, tools: ToolRegistry, support: SchemaSupport
) -> OutputForm | None:
    """The form that a run begins with, its mode chosen. Raises ConfigurationError for a mode that
    the provider has no way to ask for, and for a tool that has the name of the answer's.
    """
    form = settings.output or (None if default is None else default.form)
    if form is None:
        return None
    mode = form.mode
    if mode == "auto":
        mode = "native" if support == "native" else "tool"
    elif mode == "native" and support == "none":
        raise ConfigurationError(
            f"output: the model {settings.model!r} cannot be asked for a JSON schema: use mode "
            "'tool' or 'auto'",
            field="output",
        )
    if mode == "tool" and tools.get(form.name) is not None:
        raise ConfigurationError(
            f"output: there is a tool {form.name!r} already: give the output another name",
            field="output",
        )
    return replace(form, mode=mode)


def suited(settings: Settings, support: SchemaSupport) -> Settings:
    """The settings for a model that came in place of the first: one that cannot be asked for a
    schema is given the tool.
    """
    form = settings.output
    if form is None or form.mode != "native" or support != "none":
        return settings
    return replace(settings, output=replace(form, mode="tool"))


OutputKind: TypeAlias = Output[T] | type[T] | Mapping[str, Any]
"""What a caller may give as an output: with how it is asked for, the type alone, a JSON schema."""


class Misfit(ValueError):
    """An answer is not what it must be; the message is for the model, one fault per line."""


def _adapter(kind: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(kind)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise _no_schema(kind, error) from error


def _schema(kind: Any) -> dict[str, Any]:
    try:
        return _adapter(kind).json_schema()
    except PydanticUserError as error:
        raise _no_schema(kind, error) from error


def _no_schema(kind: Any, error: Exception) -> ConfigurationError:
    first = str(error).splitlines()[0]
    return ConfigurationError(
        f"output {kind!r} has no JSON schema ({first}): use a pydantic model, a dataclass, a "
        "TypedDict or a JSON schema",
        field="output",
    )
