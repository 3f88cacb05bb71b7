"""Runs the body of one call and makes an error result of whatever it raises.

Arguments are checked before, in `arguments`; hooks and events around a call are in `calls`.
"""

import asyncio
from collections.abc import Iterator

from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from loopwright.errors import FatalToolError
from loopwright.tools.arguments import (
    DEFAULT_RULES,
    ArgumentRules,
    InvalidArguments,
    model_faults,
    validate,
)
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult
from loopwright.tools.results import as_result, error_result

__all__ = [
    "DEFAULT_RULES",
    "MOST_ERROR_TEXT",
    "ArgumentRules",
    "InvalidArguments",
    "error_text",
    "run_call",
    "validate",
]

MOST_ERROR_TEXT = 10_000
"""Characters of an exception's message that the model gets."""


async def run_call(
    tool: Tool,
    arguments: JsonObject,
    context: ToolContext,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - the body is given up, not only cancelled
) -> ToolResult:
    """Run the tool with arguments that `validate` gave; a hook may have changed them since (S2-07).

    Whatever the body raises becomes an error result (S0-17, S1-14, S4-06), SystemExit included;
    only LangGraph's own signals, FatalToolError, KeyboardInterrupt and a cancellation of the caller
    pass through.
    After `timeout` seconds the call is an error and the body is left to itself: a coroutine is
    cancelled and not waited for, a thread runs to its end. What either does later is dropped.
    """
    if timeout is None:
        return await _guarded(tool, arguments, context)
    body = asyncio.ensure_future(_guarded(tool, arguments, context))
    try:
        await asyncio.wait({body}, timeout=timeout)
        if body.done():
            return body.result()
    finally:
        if not body.done():
            body.cancel()
            body.add_done_callback(_forget)
    return error_result(
        f"Tool {tool.name} took longer than {timeout:g} seconds and was given up. "
        "What it has started may still take effect."
    )


async def _guarded(tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
    try:
        return as_result(await tool.execute(arguments, context))
    except (GraphBubbleUp, FatalToolError):
        raise
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        return error_result("The tool was cancelled from inside.")
    except (Exception, SystemExit, BaseExceptionGroup) as error:
        for leaf in _leaves(error):
            if isinstance(leaf, GraphBubbleUp | FatalToolError | KeyboardInterrupt):
                raise leaf from error
        return error_result(error_text(error))


def error_text(error: BaseException) -> str:
    """What the model reads of an exception: its message, or its class name if it has none.

    Of a group the messages of its members. A KeyError's message is only the key, so its class name
    stands before it. At most MOST_ERROR_TEXT characters.
    """
    texts = dict.fromkeys(_message(leaf) for leaf in _leaves(error))
    text = "\n".join(texts)
    if len(text) <= MOST_ERROR_TEXT:
        return text
    return f"{text[:MOST_ERROR_TEXT]}\n[{len(text) - MOST_ERROR_TEXT:,} more characters left out]"


def _message(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, ValidationError):
        return "\n".join([f"{name} in {error.title}:", *model_faults(error)])
    try:
        text = str(error)
    except Exception:
        return name  # its own __str__ is broken
    if isinstance(error, SystemExit):
        return f"the tool tried to end the program ({name}: {text})"
    if isinstance(error, KeyError):
        return f"{name}: {text}"
    return text if text.strip() else name


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _leaves(member)
    else:
        yield error


def _is_cancelled() -> bool:
    """Whether the task itself is being cancelled, not only something that the body waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _forget(body: "asyncio.Future[ToolResult]") -> None:
    """Fetch an abandoned body's outcome, so that asyncio does not report it as never retrieved."""
    if not body.cancelled():
        body.exception()
