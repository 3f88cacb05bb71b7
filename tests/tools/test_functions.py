"""Tools from functions of every kind, what they give back, and the decorator."""

import asyncio
import functools
import threading
from typing import Any

import pytest

from loopwright.errors import ConfigurationError
from loopwright.tools.arguments import validate
from loopwright.tools.contract import ToolResult
from loopwright.tools.functions import tool
from tests.tools.running import answer, as_tool, content, context

pytestmark = pytest.mark.anyio


def schema_of(function: Any) -> dict[str, Any]:
    return as_tool(function).parameters


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def buy(self, what: str, count: int = 1) -> str:
            """Buy something."""
            return f"{count} {what} at {self.name}"

        @staticmethod
        def hours(day: str) -> str:
            return f"{day} 9-5"

        async def __call__(self, what: str) -> str:
            """Ask the shop."""
            return f"{self.name}: {what}"

    shop = Shop("Corner")
    assert await content(shop.buy, {"what": "tea"}) == "1 tea at Corner"
    assert await content(Shop.hours, {"day": "Mon"}) == "Mon 9-5"
    assert await content(shop, {"what": "?"}) == "Corner: ?"
    two = functools.partial(shop.buy, count=2)
    assert list(schema_of(two)["properties"]) == ["what"]
    assert await content(two, {"what": "tea"}) == "2 tea at Corner"
    assert await content(functools.partial(shop.buy, "milk"), {"count": 3}) == "3 milk at Corner"


async def test_a_wrapped_function_is_read_through_its_wrapper() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @logged
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert await content(add, {"a": 1, "b": 2}) == "3"


async def test_an_unknown_hint_of_the_return_value_does_not_matter() -> None:
    def take(a: "int") -> "NotImported":  # type: ignore[name-defined]  # noqa: F821
        return a

    assert await content(take, {"a": 1}) == "1"


async def test_the_decorator_leaves_the_function_as_it_was() -> None:
    @tool(name="sum", description="Adds.", execution_mode="sequential", effects="idempotent")
    def add(a: int, b: int) -> int:
        """Another text."""
        return a + b

    @tool
    def bare(a: int) -> int:
        """The text."""
        return a

    assert add(1, 2) == 3
    assert bare(1) == 1
    one, other = as_tool(add), as_tool(bare)
    assert (one.name, one.description) == ("sum", "Adds.")
    assert (one.execution_mode, one.effects) == ("sequential", "idempotent")
    assert (other.name, other.description) == ("bare", "The text.")
    assert (other.execution_mode, other.effects) == (None, "unsafe")


async def test_a_decorated_method_is_a_tool_of_its_object() -> None:
    class Shop:
        name = "Corner"

        @tool(name="shop_name", effects="none")
        def show(self) -> str:
            return self.name

    assert as_tool(Shop().show).effects == "none"
    assert await content(Shop().show) == "Corner"


@pytest.mark.parametrize("option", [{"effects": "few"}, {"execution_mode": "later"}])
async def test_an_option_that_is_none_is_refused_with_the_tool_s_name(option: Any) -> None:
    @tool(**option)
    def add(a: int) -> int:
        return a

    with pytest.raises(ConfigurationError, match=r"tool 'add'.*is not one of"):
        as_tool(add)


async def test_a_sync_body_does_not_stop_the_loop() -> None:
    release = threading.Event()

    def wait() -> str:
        assert release.wait(10)
        return "released"

    async def let_go() -> str:
        release.set()
        return "let go"

    both = await asyncio.gather(content(wait), content(let_go))
    assert list(both) == ["released", "let go"]


async def test_a_function_may_give_a_whole_result() -> None:
    def show() -> ToolResult:
        return ToolResult(content="shown", details={"n": 1}, terminate=True)

    assert await answer(show) == ToolResult(content="shown", details={"n": 1}, terminate=True)


async def test_arguments_given_to_the_body_are_not_those_of_the_call() -> None:
    given: dict[str, Any] = {"items": ["a"]}

    def change(items: list[str]) -> str:
        items.append("b")
        return ",".join(items)

    made = as_tool(change)
    assert (await made.execute(validate(made, given), context())).content == "a,b"
    assert given == {"items": ["a"]}
