"""What a scripted model answers, and the script that hands the answers out one by one.

How an answer becomes langchain chunks lives in `model`, how it becomes HTTP in `server`.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage

from loopwright.state.messages import Call
from loopwright.testing.gate import Gate

T = TypeVar("T")


class ScriptExhausted(AssertionError):
    """More requests came than the script has answers."""


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer. Without anything it is an empty one that stops normally."""

    text: str | Sequence[str] = ""
    """A string is streamed word by word; of a list each item is one delta."""

    thinking: str | Sequence[str] = ""
    """Streamed before the text."""

    calls: Sequence[Call | tuple[str, str, Any]] = ()
    """Tool calls as `Call` or `(id, name, arguments)`; arguments that are a str are sent as they
    are, so a broken text can be scripted."""

    stop: str | None = None
    """The finish reason in the provider's words; None: `tool_calls` or `stop`; "": none at all, as
    if the connection had ended early."""

    usage: Mapping[str, Any] | None = None
    """langchain-core's usage_metadata; the total is computed when missing."""

    id: str | None = None
    """Id of the message; None leaves it to langchain."""

    delay: float = 0.0
    """Seconds before the first piece, by the clock of the model or server."""

    wait_for: Gate | None = None
    """Stop at this gate before the piece number `wait_after`."""

    wait_after: int | None = None
    """None: after all of the content, before the answer's end."""

    raise_after: tuple[int, Exception] | None = None
    """`(n, error)`: fail after n pieces. A server drops the connection there."""

    chunks: Sequence[Any] | None = None
    """Raw chunks instead of the content above: AIMessageChunks for a model, payloads (dicts) for a
    server. Nothing is added, not even an end."""


@dataclass(frozen=True)
class Pause:
    """A wait within an answer."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One streamed piece, before it is put into a chunk's form. `index` counts the calls."""

    text: str = ""
    thinking: str = ""
    index: int | None = None
    call_id: str | None = None
    call_name: str | None = None
    arguments: str = ""
    stop: str | None = None
    usage: Mapping[str, Any] | None = None


def deltas(response: Response) -> list[Delta]:
    """The content of a response as pieces: thinking, text, calls."""
    found = [Delta(thinking=piece) for piece in _pieces(response.thinking)]
    found += [Delta(text=piece) for piece in _pieces(response.text)]
    for index, call in enumerate(response.calls):
        id, name, arguments = (
            (call.id, call.name, call.arguments) if isinstance(call, Call) else call
        )
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found.append(Delta(index=index, call_id=id, call_name=name))
        half = len(text) // 2
        parts = (text[:half], text[half:])
        found += [Delta(index=index, arguments=part) for part in parts if part]
    return found


def ending(response: Response) -> list[Delta]:
    """The last pieces: finish reason and usage."""
    stop = response.stop
    if stop is None:
        stop = "tool_calls" if response.calls else "stop"
    found = [Delta(stop=stop)] if stop else []
    if response.usage is not None:
        total = sum(response.usage.get(key, 0) for key in ("input_tokens", "output_tokens"))
        found.append(Delta(usage={"total_tokens": total, **response.usage}))
    return found


def timeline(
    response: Response, content: Sequence[T], end: Sequence[T] = ()
) -> Iterator[T | Pause | Gate | Exception]:
    """The pieces in order with the response's delay, gate and failure in their places."""
    if response.delay:
        yield Pause(response.delay)
    fails, error = response.raise_after or (-1, None)
    gate_at = len(content) if response.wait_after is None else response.wait_after
    pieces = [*content, *end]
    for number in range(len(pieces) + 1):
        if number == gate_at and response.wait_for:
            yield response.wait_for
        if error is not None and number == min(fails, len(pieces)):
            yield error
        if number < len(pieces):
            yield pieces[number]


def _pieces(text: str | Sequence[str]) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text) if isinstance(text, str) else list(text)


def as_response(item: str | AIMessage | Response) -> Response:
    """The response that says the same as a string or a message. Raises TypeError for the rest."""
    if isinstance(item, Response):
        return item
    if isinstance(item, str):
        return Response(text=item)
    if not isinstance(item, AIMessage):
        raise TypeError(f"a script cannot answer with {type(item).__name__}")
    made = [*item.tool_calls, *item.invalid_tool_calls]
    thinking = [b["reasoning"] for b in item.content_blocks if b["type"] == "reasoning"]
    return Response(
        text=item.text,
        thinking=[text for text in thinking if text],
        calls=[(call["id"] or "", call["name"] or "", _or_blank(call["args"])) for call in made],
        stop=item.response_metadata.get("finish_reason"),
        usage=item.usage_metadata,
        id=item.id,
    )


def _or_blank(arguments: Any) -> Any:
    return "" if arguments is None else arguments


class Script(Generic[T]):
    """Answers in order, and a record of the requests that took them. Safe from any thread.

    The script may be any iterable, an endless one too; a callable in it makes its answer from the
    request when its turn comes.
    """

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = iter(answers)
        self._lock = threading.Lock()
        self.requests: list[T] = []

    def take(self, request: T, view: Callable[[T], Any]) -> Any:
        """Record the request and give its answer; `view` is what a callable answer is shown.

        Raises ScriptExhausted when there is none left.
        """
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            answer = next(self._answers, None)
        if answer is None:
            raise ScriptExhausted(f"the script has no answer for request {number}")
        return answer(view(request)) if callable(answer) else answer
