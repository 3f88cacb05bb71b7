"""How a registry is made from tools, functions and langchain tools, and what it refuses."""

import functools
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_decorator

from loopwright.errors import ConfigurationError
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from loopwright.tools.functions import tool
from loopwright.tools.registry import registry


async def nothing(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult()


def plain(name: str = "plain", parameters: Any = None) -> Tool:
    schema = {"type": "object"} if parameters is None else parameters
    return Tool(name=name, description="", parameters=schema, execute=nothing)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


class Counter:
    def step(self, by: int) -> int:
        """Count on."""
        return by

    def __call__(self, by: int) -> int:
        """Count at once."""
        return by


def test_every_kind_of_tool_is_taken_and_keeps_its_place() -> None:
    @langchain_decorator
    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    half = functools.partial(add, b=2)
    made = registry([plain(), add, fetch, Counter().step, Counter(), shout])
    assert made.names() == ["plain", "add", "fetch", "step", "Counter", "shout"]
    assert [t.description for t in made.tools[1:]] == [
        "Add two numbers.",
        "Fetch a page.",
        "Count on.",
        "Count at once.",
        "Say it loudly.",
    ]
    assert registry([half]).names() == ["add"]


def test_an_empty_list_is_a_registry_without_tools() -> None:
    assert registry([]).names() == []


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'add' is given twice"):
        registry([add, plain("add")])


@pytest.mark.parametrize("name", ["files.read", "read file", "a" * 65, "öffnen", "a\n", "<lambda>"])
def test_a_name_that_servers_refuse_is_taken_because_they_are_sent_another(name: str) -> None:
    assert registry([plain(name)]).names() == [name]


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_a_blank_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name"):
        registry([plain(name)])


@pytest.mark.parametrize("name", ["a", "A-b_9", "a" * 64])
def test_a_name_that_every_provider_takes_is_taken(name: str) -> None:
    assert registry([plain(name)]).names() == [name]


@pytest.mark.parametrize("given", [3, None, {"type": "web_search"}, "add"])
def test_what_is_no_tool_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no tool: use a function or a Tool"):
        registry([given])


@pytest.mark.parametrize("given", [Counter, BaseTool])
def test_a_class_is_refused_with_the_hint_to_make_an_instance(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="give an instance"):
        registry([given])


@pytest.mark.parametrize("given", ["add", add, {"add": add}, None])
def test_what_is_no_list_of_tools_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="use a list"):
        registry(given)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"type": "array"}, "'array'"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, r"properties.a.type"),
        ({"type": "object", "default": {1, 2}}, "not JSON"),
        ({"type": "object", "default": float("nan")}, "not JSON"),
    ],
)
def test_parameters_that_are_no_schema_of_an_object_are_refused(
    parameters: Any, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        registry([plain("broken", parameters)])
    assert "'broken'" in str(refused.value)


def test_the_decorator_s_name_counts_when_names_are_compared() -> None:
    @tool(name="add")
    def other(a: int) -> int:
        return a

    with pytest.raises(ConfigurationError, match="'add' is given twice"):
        registry([add, other])


@pytest.mark.parametrize("fields", [{"effects": "few"}, {"execution_mode": "later"}])
def test_a_tool_says_at_once_that_an_option_is_none(fields: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"tool 'a': \w+ '(few|later)' is not one of"):
        Tool(name="a", description="", parameters={}, execute=nothing, **fields)
