"""A provider that plays a script of stream events, for what no langchain model can be made to do.

Tests that need no exact stream use `loopwright.testing.ScriptedModel`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEnd,
    StreamEvent,
    StreamPiece,
    StreamStart,
)
from loopwright.testing import Gate

Step = StreamEvent | Exception | Gate
Answer = str | AIMessage | Exception | Sequence[Step]
Scripted = Answer | Callable[[ModelRequest], Answer]
"""Text, a message, an exception to raise at once, exact steps, or a function of the request."""


class ScriptedProvider(Provider):
    """Answers its n-th request with the n-th item of the script; an AssertionError past its end."""

    id = "scripted"

    def __init__(self, *script: Scripted, window: int | None = None) -> None:
        self.script = list(script)
        self.window = window
        self.requests: list[ModelRequest] = []

    def context_window(self, model: str) -> int | None:
        return self.window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        assert self.script, f"the script has no answer for request {len(self.requests)}"
        answer = self.script.pop(0)
        for step in steps(answer(request) if callable(answer) else answer):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Gate):
                await step.wait()
            else:
                yield step


def steps(answer: Answer) -> Sequence[Step]:
    """The steps that play an answer: its text as one block."""
    if isinstance(answer, Exception):
        return [answer]
    if isinstance(answer, str):
        answer = said(answer)
    if not isinstance(answer, AIMessage):
        return answer
    text = [
        StreamPiece(kind="text_start", index=0),
        StreamPiece(kind="text_delta", index=0, delta=answer.text),
        StreamPiece(kind="text_end", index=0),
    ]
    return [StreamStart(), *(text if answer.text else []), StreamEnd(message=answer)]


def said(text: str = "", *calls: tuple[str, str, Any], stop: str | None = None) -> AIMessage:
    """An assistant message with calls `(id, name, arguments)`; a str is a broken text."""
    whole = [{"id": id, "name": name, "args": a} for id, name, a in calls if isinstance(a, dict)]
    broken = [
        {"id": id, "name": name, "args": a, "error": "its arguments are broken"}
        for id, name, a in calls
        if isinstance(a, str)
    ]
    metadata: dict[str, Any] = {"stop_reason": stop} if stop else {}
    if stop in ("error", "aborted"):
        metadata |= {"error_message": f"it was {stop}", "error_kind": "server_error"}
    return AIMessage(text, tool_calls=whole, invalid_tool_calls=broken, response_metadata=metadata)
