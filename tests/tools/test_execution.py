"""What one call answers, whatever its body does."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel

from loopwright.errors import FatalToolError
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from loopwright.tools.execution import MOST_ERROR_TEXT, error_text, run_call
from tests.tools.running import answer, as_tool, context, failure

pytestmark = pytest.mark.anyio


class SilentError(Exception):
    pass


class BrokenTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(error: BaseException) -> list[Callable[[], Any]]:
    """A sync and an async body that raise this."""

    def body() -> str:
        raise error

    async def body_async() -> str:
        raise error

    return [body, body_async]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such city"), "no such city"),
        (SilentError(), "SilentError"),
        (SilentError("  "), "SilentError"),
        (BrokenTextError(), "BrokenTextError"),
        (KeyError("city"), "KeyError: 'city'"),
        (SystemExit(3), "the tool tried to end the program (SystemExit: 3)"),
        (TimeoutError(), "TimeoutError"),
        (StopIteration(), "RuntimeError"),
        (ExceptionGroup("two", [ValueError("a"), ExceptionGroup("x", [KeyError("b")])]), "a"),
    ],
)
async def test_what_a_body_raises_is_an_error_result(error: BaseException, told: str) -> None:
    for body in raising(error):
        result = await answer(body)
        assert result.is_error
        assert str(result.content).startswith(told) or isinstance(error, StopIteration)


async def test_all_errors_of_a_group_are_told_once() -> None:
    group = ExceptionGroup("g", [ValueError("a"), ValueError("b"), ValueError("a")])
    assert error_text(group) == "a\nb"


async def test_the_text_of_an_error_is_bounded() -> None:
    text = error_text(ValueError("x" * (MOST_ERROR_TEXT + 5)))
    assert text.endswith("\n[5 more characters left out]")
    assert len(text) < MOST_ERROR_TEXT + 50


async def test_a_validation_error_of_the_body_is_told_without_links() -> None:
    class Reply(BaseModel):
        n: int

    async def ask() -> str:
        return str(Reply.model_validate({"n": "x"}))

    assert await failure(ask) == (
        "ValidationError in Reply:\n"
        "n: Input should be a valid integer, unable to parse string as an integer"
    )


@pytest.mark.parametrize("seconds", [None, 30])
async def test_signals_of_langgraph_pass_through(seconds: float | None) -> None:
    for body in raising(GraphInterrupt()):
        with pytest.raises(GraphInterrupt):
            await run_call(as_tool(body), {}, context(), timeout=seconds)


@pytest.mark.parametrize("seconds", [None, 30])
async def test_a_failure_that_must_end_the_run_passes_through(seconds: float | None) -> None:
    for body in raising(FatalToolError("beyond repair")):
        with pytest.raises(FatalToolError, match="beyond repair"):
            await run_call(as_tool(body), {}, context(), timeout=seconds)


async def test_a_signal_of_langgraph_passes_out_of_a_task_group() -> None:
    async def ask() -> None:
        raise GraphInterrupt

    async def body() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
        return ""

    with pytest.raises(GraphInterrupt):
        await run_call(as_tool(body), {}, context())


def test_a_keyboard_interrupt_passes_through() -> None:
    for body in raising(KeyboardInterrupt()):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(run_call(as_tool(body), {}, context()))


@pytest.mark.parametrize("seconds", [None, 30])
async def test_a_cancelled_caller_stays_cancelled(seconds: float | None) -> None:
    started = asyncio.Event()
    ended: list[str] = []

    async def body() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        return ""

    task = asyncio.create_task(run_call(as_tool(body), {}, context(), timeout=seconds))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert ended == ["ended"]


@pytest.mark.parametrize("seconds", [None, 30])
async def test_a_body_that_is_cancelled_from_inside_is_an_error(seconds: float | None) -> None:
    async def body() -> str:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner
        return ""

    result = await run_call(as_tool(body), {}, context(), timeout=seconds)
    assert result == ToolResult(content="The tool was cancelled from inside.", is_error=True)


async def test_a_body_that_takes_too_long_is_given_up() -> None:
    ended: list[str] = []

    async def body() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        return ""

    result = await run_call(as_tool(body), {}, context(), timeout=0.01)
    assert result.is_error
    assert "took longer than 0.01 seconds" in str(result.content)
    await asyncio.sleep(0)
    assert ended == ["ended"]


async def test_a_body_that_refuses_to_be_cancelled_is_not_waited_for() -> None:
    let_go = asyncio.Event()
    ended = asyncio.Event()

    async def body() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await let_go.wait()
        ended.set()
        raise RuntimeError("too late, and dropped")

    result = await run_call(as_tool(body), {}, context(), timeout=0.01)
    assert result.is_error
    assert not ended.is_set()
    let_go.set()
    await ended.wait()


async def test_a_thread_that_takes_too_long_is_left_to_itself() -> None:
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def body() -> str:
        started.set()
        release.wait()
        ended.set()
        return ""

    result = await run_call(as_tool(body), {}, context(), timeout=1)
    assert result.is_error
    assert started.is_set()
    assert not ended.is_set()
    release.set()
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_body_within_its_time_answers() -> None:
    async def body() -> str:
        return "in time"

    result = await run_call(as_tool(body), {}, context(), timeout=30)
    assert result == ToolResult(content="in time")


async def test_arguments_that_a_hook_has_changed_are_not_checked_again() -> None:
    async def show(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=str(arguments["x"]))

    number = {"type": "object", "properties": {"x": {"type": "number"}}}
    made = Tool(name="show", description="", parameters=number, execute=show)
    assert (await run_call(made, {"x": "not a number"}, context())).content == "not a number"


async def test_a_tool_that_gives_no_result_is_read_like_a_function() -> None:
    async def give(arguments: dict[str, Any], context: ToolContext) -> Any:
        return {"n": 1}

    made = Tool(name="give", description="", parameters={"type": "object"}, execute=give)
    assert await run_call(made, {}, context()) == ToolResult(content='{"n":1}')
