"""What a langchain tool answers in LangChain's own words, read as one ToolResult.

ToolMessage, Command and lists of them; any other value is read in `results`.
"""

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.messages import convert_to_messages as as_messages
from langgraph.types import Command

from loopwright.tools.contract import ToolResult
from loopwright.tools.results import as_result, details_of, error_result


class AnswerError(ValueError):
    """An answer that asks for something a tool cannot have; the message says what."""


def read(answer: Any, *, call_id: str) -> ToolResult:
    """The result that `answer` stands for. Never raises; what is not supported is an error result.

    Of a Command only `update={"messages": [...]}` is taken: its ToolMessage for this call is the
    result, other messages follow the batch (S1-06).
    """
    parts = answer if isinstance(answer, list) and answer else [answer]
    if not all(isinstance(part, ToolMessage | Command) for part in parts):
        return as_result(answer)
    if isinstance(answer, ToolMessage):
        return _result(answer)
    try:
        messages = [message for part in parts for message in _messages(part)]
        return _split(messages, call_id)
    except AnswerError as error:
        return error_result(f"The tool ran, but {error}.")


def _result(message: ToolMessage, others: tuple[AnyMessage, ...] = ()) -> ToolResult:
    result = ToolResult(
        content=message.content,
        details=details_of(message.artifact),
        is_error=message.status == "error",
        messages=others,
    )
    return as_result(result)


def _split(messages: list[AnyMessage], call_id: str) -> ToolResult:
    own = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call_id]
    if len(own) != 1:
        raise AnswerError(
            f"its Command holds {len(own)} ToolMessages with this call's id where one is needed"
        )
    others = tuple(message for message in messages if message is not own[0])
    for message in others:
        _check(message)
    return _result(own[0], others)


def _messages(part: Any) -> Iterator[AnyMessage]:
    if isinstance(part, ToolMessage):
        yield part
        return
    for name in ("goto", "graph", "resume"):
        if getattr(part, name):
            raise AnswerError(f"its Command sets {name!r}, which a tool here cannot do")
    update = part.update or {}
    if not isinstance(update, dict):
        raise AnswerError(f"its Command's update is a {type(update).__name__}, not a dict")
    for name in update:
        if name != "messages":
            raise AnswerError(f"its Command writes the state's {name!r}, which no tool here can do")
    yield from _as_messages(update.get("messages", []))


def _as_messages(given: Any) -> list[AnyMessage]:
    many = given if isinstance(given, list | tuple) else [given]
    try:
        return list(as_messages(list(many)))  # type: ignore[arg-type]
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise AnswerError(f"its Command holds something that is no message ({error})") from error


def _check(message: BaseMessage) -> None:
    """What would break the pairing of calls and results, or rewrite the ledger, is refused."""
    if isinstance(message, ToolMessage):
        raise AnswerError(f"it answers another call ({message.tool_call_id!r})")
    if isinstance(message, RemoveMessage):
        raise AnswerError("it removes messages, which a tool here cannot do")
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        raise AnswerError("it adds an assistant message with tool calls, which nothing would run")
