"""The model of a scenario: a provider that plays its responses, one stream event per pull.

What a request and a message look like in a trace is `shorthand`'s.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

from langchain_core.messages import AIMessage

from loopwright.events import UpdateKind
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEnd,
    StreamEvent,
    StreamPiece,
    StreamStart,
)
from loopwright.signals import Aborted, AbortSignal
from tests.conformance.pi.shorthand import STOPS, Json, simplified, text_block, tool_call
from tests.conformance.pi.world import Scripted, World, compact, units

EXHAUSTED: Json = {"error": "script exhausted"}
ABORTED = "Request was aborted"
MOST_EXHAUSTED = 20
"""Requests behind the end of the script after which a run counts as one that does not end."""


class Answering(Provider):
    """The provider of one model name; all of a world's providers share its responses."""

    def __init__(self, world: World, model: str) -> None:
        self.id = f"prov-{model}"
        self._world = world

    def context_window(self, model: str) -> int | None:
        """Not known: nothing is compacted."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next response of the script, pulled lazily."""
        responses = self._world.scenario.get("responses", [])
        number = self._record(request)
        if number > len(responses) + MOST_EXHAUSTED:
            raise RuntimeError("the run does not end")
        await self._world.fire("request", number)
        response = responses[number - 1] if number <= len(responses) else EXHAUSTED
        if "throw" in response and "throwAfter" not in response:
            raise Scripted(response["throw"])
        async for event in Answer(response, request).events():
            yield event

    def _record(self, request: ModelRequest) -> int:
        number = len(self._world.requests) + 1
        level = request.thinking_level
        shown: Json = {
            "n": number,
            "model": request.model,
            "systemPrompt": request.system_prompt,
            "reasoning": None if level == "off" else level,
            "aborted": request.signal.aborted,
            "tools": [tool.name for tool in request.tools],
            "messages": [simplified(message) for message in request.messages],
        }
        key = request.api_key or self._world.scenario.get("agent", {}).get("apiKey")
        if key is not None:
            shown["apiKey"] = key
        self._world.requests.append(deepcopy(shown))
        self._world.log.append(f"request:{number}")
        return number


class Answer:
    """One response while it streams: what of its content was given so far."""

    def __init__(self, response: Json, request: ModelRequest) -> None:
        self._response = response
        self._model = request.model
        self._abort = request.signal
        self._signal = AbortSignal() if response.get("ignoreAbort") else request.signal
        self._given: list[StreamPiece] = []

    async def events(self) -> AsyncIterator[StreamEvent]:
        """Start, pieces, end; cut short by the signal or by what the response says."""
        with suppress(Aborted):
            await self._signal.race(units(self._response.get("delay", 0)))
        for count, event in enumerate(self._script()):
            await self._before(count)
            if self._signal.aborted:
                yield self._cut_short()
                return
            if isinstance(event, StreamPiece):
                self._given.append(event)
            yield event
        if self._response.get("endWithoutDone"):  # this contract has the result as an event
            yield self._whole()

    async def _before(self, count: int) -> None:
        """What the response does when so many events were given."""
        if count == self._response.get("waitAbortAfter"):
            await self._abort.wait()
        if count == self._response.get("throwAfter"):
            raise Scripted(self._response["throw"])

    def _script(self) -> Iterator[StreamEvent]:
        if not self._response.get("noStart"):
            yield StreamStart()
        if not self._response.get("onlyStart"):
            yield from self._pieces()
        if not self._response.get("endWithoutDone"):
            yield self._whole()

    def _pieces(self) -> Iterator[StreamPiece]:
        for index, (kind, value) in enumerate(_blocks(self._response)):
            yield from _pieces(index, kind, value)

    def _whole(self) -> StreamEnd:
        given = self._response
        stop = "toolUse" if any(kind == "call" for kind, _ in _blocks(given)) else "stop"
        stop = given.get("stop", "error" if "error" in given else stop)
        metadata: Json = {"stop_reason": STOPS.get(stop, stop)}
        if "error" in given:
            metadata["error_message"] = given["error"]
        if "deferred" in given:
            metadata["deferred"] = given["deferred"]
        return self._end(list(self._pieces()), metadata)

    def _cut_short(self) -> StreamEnd:
        metadata = {"stop_reason": "aborted", "error_message": ABORTED}
        return self._end(self._given, metadata)

    def _end(self, pieces: list[StreamPiece], metadata: Json) -> StreamEnd:
        assembled = _assembled(pieces)
        calls = [block for block in assembled if block["type"] == "tool_call"]
        content: list[Any] = [block for block in assembled if block["type"] != "tool_call"]
        names = {"model": self._model, "provider": f"prov-{self._model}"}
        message = AIMessage(
            content=content, tool_calls=calls, response_metadata={**names, **metadata}
        )
        return StreamEnd(message=message)


def _blocks(response: Json) -> list[tuple[str, Any]]:
    """The blocks of a response: thinking, text and calls, or an explicit list of them."""
    if "content" in response:
        return [item for block in response["content"] for item in block.items()]
    texts = [(key, response[key]) for key in ("thinking", "text") if key in response]
    return [*texts, *(("call", call) for call in response.get("calls", []))]


def _pieces(index: int, kind: str, value: Any) -> Iterator[StreamPiece]:
    """The stream of one block: a start, one delta for each part, an end."""
    if kind == "call":
        call = {"tool_call_id": value[0], "tool_name": value[1]}
        text = compact(value[2])
        yield StreamPiece(kind="tool_call_start", index=index, **call)
        yield StreamPiece(kind="tool_call_delta", index=index, delta=text)
        yield StreamPiece(kind="tool_call_end", index=index)
        return
    thinks = kind == "thinking"
    yield StreamPiece(kind="thinking_start" if thinks else "text_start", index=index)
    for part in [value] if isinstance(value, str) else value:
        delta: UpdateKind = "thinking_delta" if thinks else "text_delta"
        yield StreamPiece(kind=delta, index=index, delta=part)
    yield StreamPiece(kind="thinking_end" if thinks else "text_end", index=index)


def _assembled(pieces: list[StreamPiece]) -> list[Json]:
    """The content blocks that these pieces amount to, calls among them."""
    grouped: dict[int, list[StreamPiece]] = {}
    for piece in pieces:
        grouped.setdefault(piece.index, []).append(piece)
    return [_block(group[0], "".join(piece.delta for piece in group)) for group in grouped.values()]


def _block(start: StreamPiece, text: str) -> Json:
    if start.kind == "tool_call_start":
        arguments = json.loads(text) if text else {}
        return tool_call([start.tool_call_id, start.tool_name, arguments])
    if start.kind == "thinking_start":
        return {"type": "reasoning", "reasoning": text}
    return text_block(text)
