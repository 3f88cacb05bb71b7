"""The parameters of tools from functions: their schema, and the arguments that become of it."""

import threading
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError
from loopwright.tools.arguments import InvalidArguments, validate
from loopwright.tools.contract import ToolContext
from loopwright.tools.functions import function_tool
from tests.tools.running import answer, as_tool, content

pytestmark = pytest.mark.anyio


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Order(BaseModel):
    items: list[str]
    urgent: bool = False


class Options(TypedDict):
    depth: int
    note: NotRequired[str]


def schema_of(function: Any) -> dict[str, Any]:
    return as_tool(function).parameters


async def test_hints_become_a_closed_schema_without_titles() -> None:
    def find(
        name: str,
        kind: Literal["file", "folder"],
        size: float | None = None,
        tags: list[str] = [],  # noqa: B006 - a default that a user may write
        older: Optional[int] = None,  # noqa: UP045 - the old spelling
    ) -> str:
        return name

    assert schema_of(find) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "kind"],
        "properties": {
            "name": {"type": "string"},
            "kind": {"type": "string", "enum": ["file", "folder"]},
            "size": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "older": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        },
    }


async def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def ping() -> str:
        return "pong"

    assert schema_of(ping) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert await content(ping) == "pong"


async def test_descriptions_come_from_field_then_hint_then_docstring() -> None:
    def find(
        a: Annotated[int, Field(ge=1, description="of the field")],
        b: Annotated[str, "of the hint"],
        c: str,
        d: int = Field(5, description="of the default"),
    ) -> str:
        """Find it.

        Args:
            a: of the docstring
            b: of the docstring
            c: of the docstring
            d: of the docstring
        """
        return f"{a}{b}{c}{d}"

    made = as_tool(find)
    assert made.description == "Find it."
    assert {n: p["description"] for n, p in made.parameters["properties"].items()} == {
        "a": "of the field",
        "b": "of the hint",
        "c": "of the docstring",
        "d": "of the default",
    }
    assert made.parameters["properties"]["a"]["minimum"] == 1
    assert await content(find, {"a": 1, "b": "b", "c": "c"}) == "1bc5"
    with pytest.raises(InvalidArguments, match=r"a: 0 is less than the minimum"):
        validate(made, {"a": 0, "b": "", "c": ""})


async def test_arguments_are_made_into_the_objects_that_the_function_takes() -> None:
    def show(
        colour: Colour, point: Point, order: Order, options: Options, many: list[Point]
    ) -> Any:
        kinds = [type(colour), type(point), type(order), type(options), type(many[0])]
        return [kind.__name__ for kind in kinds] + [point.y, order.items, options["depth"]]

    given = {
        "colour": "red",
        "point": {"x": 1},
        "order": {"items": ["a"]},
        "options": {"depth": 2},
        "many": [{"x": 3}],
    }
    assert await content(show, given) == '["Colour","Point","Order","dict","Point",0,["a"],2]'


async def test_arguments_that_only_the_type_refuses_are_told_like_all_bad_arguments() -> None:
    class Even(BaseModel):
        n: Annotated[int, Field(multiple_of=2)]

    def take(even: Even, text: Annotated[str, Field(pattern="^a")]) -> str:
        return "ok"

    with pytest.raises(InvalidArguments) as refused:
        validate(as_tool(take), {"even": {"n": 3}, "text": "b"})
    assert str(refused.value).splitlines()[0] == 'Validation failed for tool "take":'
    assert "- even.n: 3 is not a multiple of 2" in str(refused.value).splitlines()


async def test_a_fault_that_only_pydantic_finds_is_an_error_of_the_same_form() -> None:
    def on(when: date) -> str:
        return str(when)

    assert await content(on, {"when": "2024-02-29"}) == "2024-02-29"
    result = await answer(on, {"when": "2024-02-31"})
    assert result.is_error
    assert str(result.content).startswith('Validation failed for tool "on":\n- when: ')
    assert "https://" not in str(result.content)


async def test_what_is_not_given_keeps_the_function_s_own_default() -> None:
    marker = object()

    def take(name: str = "me", at: Any = marker) -> str:
        return f"{name} {at is marker}"

    assert await content(take) == "me True"
    assert "default" not in schema_of(take)["properties"]["at"]


async def test_names_that_pydantic_would_refuse_are_fine() -> None:
    def take(schema: int, copy: int, _hidden: int, model_config: int, self_: int = 1) -> Any:
        return [schema, copy, _hidden, model_config, self_]

    given = {"schema": 1, "copy": 2, "_hidden": 3, "model_config": 4}
    assert await content(take, given) == "[1,2,3,4,1]"


async def test_positional_and_keyword_only_parameters_are_passed_as_they_must_be() -> None:
    def take(a: int, /, b: int = 2, *, c: int = 3) -> Any:
        return [a, b, c]

    assert await content(take, {"a": 1}) == "[1,2,3]"
    assert await content(take, {"a": 1, "c": 9}) == "[1,2,9]"
    assert await content(take, {"c": 9, "b": 8, "a": 7}) == "[7,8,9]"


async def test_the_context_is_injected_and_hidden() -> None:
    def who(name: str, context: ToolContext, other: int = 1) -> str:
        return f"{name} {context.call_id}"

    def perhaps(context: ToolContext | None = None) -> str:
        return str(context and context.thread)

    assert list(schema_of(who)["properties"]) == ["name", "other"]
    assert await content(who, {"name": "n"}) == "n call-1"
    assert await content(perhaps) == "thread-1"
    with pytest.raises(InvalidArguments, match="context"):
        validate(as_tool(who), {"name": "n", "context": {}})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda *args: 1, r"\*args takes any arguments"),
        (lambda **kwargs: 1, r"\*\*kwargs takes any arguments"),
        (lambda a: 1, "parameter 'a' has no type hint"),
    ],
)
async def test_parameters_that_no_schema_can_show_are_refused(function: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        function_tool(function, name="broken")
    assert "tool 'broken'" in str(refused.value)


async def test_types_without_a_json_form_are_refused() -> None:
    def take(lock: threading.Event) -> str:
        return ""

    def unknown(a: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    with pytest.raises(ConfigurationError, match=r"tool 'take'.*threading.Event"):
        as_tool(take)
    with pytest.raises(ConfigurationError, match=r"tool 'unknown'.*Missing"):
        as_tool(unknown)


async def test_parameters_that_langchain_would_inject_are_refused_not_shown_to_the_model() -> None:
    def state(x: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
        return ""

    def runtime(x: int, runtime: ToolRuntime) -> str:
        return ""

    def config(x: int, config: RunnableConfig) -> str:
        return ""

    for function in (state, runtime, config):
        with pytest.raises(ConfigurationError, match="take a ToolContext"):
            as_tool(function)
