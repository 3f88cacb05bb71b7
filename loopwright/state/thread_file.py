"""A thread as a file of JSON lines: how it is written, and how such a file is read and checked.

Only the kinds of messages named here are made of what a file says, whatever else is in it. What is
put into a file, and where an imported thread is stored, is decided in `stored`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, BinaryIO

from langchain_core.messages import AnyMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from loopwright.errors import ThreadFileError
from loopwright.state.schema import StoredPlan, View

FORMAT, VERSION = "loopwright.thread", 1
KINDS = ("human", "ai", "tool", "system", "chat", "function")
"""The types of messages that a file may hold."""
QUEUES = ("steering", "follow_up")
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one line, which holds one message."""
LARGEST_FILE = 1024 * 1024 * 1024
"""Bytes that are read of a file."""
MOST_DEPTH = 200
"""Containers inside containers that a line may have."""

_SERDE = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


@dataclass(frozen=True)
class ThreadFile:
    """What a file tells of a thread. `results` answer calls that the messages leave open."""

    thread: str
    messages: list[AnyMessage] = field(default_factory=list)
    system_prompt: str | None = None
    compaction: View | None = None
    usage: dict[str, int] = field(default_factory=dict)
    plan: StoredPlan | None = None
    results: list[ToolMessage] = field(default_factory=list)
    queued: list[tuple[str, AnyMessage]] = field(default_factory=list)
    """Messages that wait, each with its queue, oldest first."""

    torn: bool = False
    """Whether the end of the file is missing."""


def dumped(thread: ThreadFile, time: str) -> Iterator[str]:
    """The lines of the file: a header, the state, then each message, then what is queued."""
    yield _line(
        format=FORMAT,
        version=VERSION,
        thread=thread.thread,
        exported=time,
        messages=len(thread.messages),
        queued=len(thread.queued),
    )
    compaction: Any = thread.compaction
    if compaction is not None:
        compaction = {**compaction, "head": [message_to_dict(m) for m in compaction["head"]]}
    yield _line(
        system_prompt=thread.system_prompt,
        compaction=compaction,
        usage=thread.usage,
        plan=thread.plan,
        results=[message_to_dict(message) for message in thread.results],
    )
    for message in thread.messages:
        yield _line(message=message_to_dict(message))
    for queue, message in thread.queued:
        yield _line(queue=queue, message=message_to_dict(message))


def _line(**fields: Any) -> str:
    return json.dumps(plain(fields), separators=(",", ":")) + "\n"


def plain(value: Any) -> Any:
    """The value as plain JSON: bytes are base64, and what has no JSON form at all is left out with
    a note.
    """
    return to_jsonable_python(
        value,
        bytes_mode="base64",
        inf_nan_mode="null",
        fallback=lambda other: {"note": f"left out: a value of type {type(other).__qualname__}"},
    )


def parsed(file: BinaryIO, path: str) -> ThreadFile:
    """What a file tells. Raises ThreadFileError for a line that no export has written.

    A last line that breaks off is left out, and whatever is missing at the end is told by `torn`.
    """
    lines = _lines(file, path)
    header = next(lines, None)
    if header is None:
        raise ThreadFileError(path, "it holds no thread")
    expected = _header(header)
    state = next(lines, None)
    found = ThreadFile(str(header.value["thread"]), **(_state(state) if state else {}))
    for line in lines:
        _take(found, line, expected)
    torn = state is None or (len(found.messages), len(found.queued)) != expected
    return ThreadFile(**{**vars(found), "torn": torn})


@dataclass(frozen=True)
class _Line:
    """One line of a file: what it says, and where it stands."""

    path: str
    number: int
    value: dict[str, Any]

    def wrong(self, reason: str) -> ThreadFileError:
        return ThreadFileError(self.path, reason, line=self.number)


def _lines(file: BinaryIO, path: str) -> Iterator[_Line]:
    size = number = 0
    while raw := file.readline(LONGEST_LINE + 1):
        number, size = number + 1, size + len(raw)
        if len(raw) > LONGEST_LINE or size > LARGEST_FILE:
            limit = LONGEST_LINE if len(raw) > LONGEST_LINE else LARGEST_FILE
            raise ThreadFileError(path, f"it is longer than {limit} bytes", line=number)
        try:
            value = json.loads(raw, parse_constant=_no_number)
            if not isinstance(value, dict) or _depth(value) > MOST_DEPTH:
                raise ValueError(f"not an object of at most {MOST_DEPTH} levels")
        except (ValueError, RecursionError) as error:
            if number > 1 and not raw.endswith(b"\n"):
                return
            raise ThreadFileError(
                path, f"it is no line of a thread ({error})", line=number
            ) from error
        yield _Line(path, number, value)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _depth(value: Any) -> int:
    """How deep containers are nested; stops counting behind the limit."""
    deepest, level = 0, [value]
    while level and deepest <= MOST_DEPTH:
        deepest += 1
        inner: list[Any] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item
        level = [item for item in inner if isinstance(item, dict | list)]
    return deepest


def _header(line: _Line) -> tuple[int, int]:
    """How many messages and queued ones the file has."""
    value = line.value
    if value.get("format") != FORMAT:
        raise line.wrong("this is no exported thread")
    if value.get("version") != VERSION:
        version = f"its version {str(value.get('version'))[:20]!r} is not {VERSION}"
        raise line.wrong(f"{version}: use the Loopwright that wrote it")
    if not isinstance(value.get("thread"), str):
        raise line.wrong("the header names no thread")
    return _count(line, value.get("messages")), _count(line, value.get("queued"))


def _state(line: _Line) -> dict[str, Any]:
    value = line.value
    if set(value) != {"system_prompt", "compaction", "usage", "plan", "results"}:
        raise line.wrong("the line behind the header has to hold the thread's state")
    prompt, usage = value["system_prompt"], value["usage"]
    if not isinstance(prompt, str | None):
        raise line.wrong("the system prompt is no text")
    if not isinstance(usage, dict):
        raise line.wrong("usage is no object")
    results = [_message(line, result) for result in _list(line, value["results"])]
    if not all(isinstance(result, ToolMessage) for result in results):
        raise line.wrong("a result is no tool message")
    return {
        "system_prompt": prompt,
        "compaction": _view(line, value["compaction"]),
        "usage": {str(name): _amount(line, name, used) for name, used in usage.items()},
        "plan": _plan(line, value["plan"]),
        "results": results,
    }


def _plan(line: _Line, value: Any) -> StoredPlan | None:
    try:
        return TypeAdapter(StoredPlan | None).validate_python(value, strict=True)
    except ValidationError as error:
        raise line.wrong("the plan is none") from error


def _view(line: _Line, value: Any) -> View | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or set(value) != {"head", "start", "measured_from"}:
        raise line.wrong("the compaction is none")
    return View(
        head=[_message(line, message) for message in _list(line, value["head"])],
        start=_count(line, value["start"]),
        measured_from=_count(line, value["measured_from"]),
    )


def _take(found: ThreadFile, line: _Line, expected: tuple[int, int]) -> None:
    queue = line.value.get("queue")
    if set(line.value) not in ({"message"}, {"message", "queue"}) or queue not in (None, *QUEUES):
        raise line.wrong("it is no line of a thread")
    message = _message(line, line.value["message"])
    if queue is not None:
        found.queued.append((queue, message))
    elif found.queued:
        raise line.wrong("a message stands behind a queued one")
    else:
        found.messages.append(message)
    if len(found.messages) > expected[0] or len(found.queued) > expected[1]:
        raise line.wrong("the header tells of fewer messages")


def _message(line: _Line, value: Any) -> AnyMessage:
    try:
        return message_of(value)
    except ValueError as error:
        raise line.wrong(str(error)) from error


def message_of(value: Any) -> AnyMessage:
    """The message of this dict form, which can be stored. Nothing in it names a class.

    Raises ValueError.
    """
    if not isinstance(value, dict) or set(value) != {"type", "data"} or value["type"] not in KINDS:
        raise ValueError(f"it is no message: use one of the types {', '.join(KINDS)}")
    if not isinstance(value["data"], dict):
        raise ValueError("the message has no data")
    try:
        (message,) = messages_from_dict([value])
        _SERDE.dumps_typed(message)
    except (ValueError, TypeError, AttributeError, KeyError) as error:  # as langchain reads it
        raise ValueError(f"the message cannot be taken: {str(error)[:300]}") from error
    return message  # type: ignore[return-value]


def _count(line: _Line, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise line.wrong(f"{str(value)[:40]!r} is no count")
    return value


def _amount(line: _Line, name: str, value: Any) -> int | float | bool | None:
    """A total of `spending.Usage`: tokens, or a cost that may not be known, or a mark."""
    if name == "estimated" and isinstance(value, bool):
        return value
    if name not in ("cost", "known_cost"):
        return _count(line, value)
    if value is None and name == "cost":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise line.wrong(f"{str(value)[:40]!r} is no cost")
    return value


def _list(line: _Line, value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise line.wrong("a list is missing")
    return value
