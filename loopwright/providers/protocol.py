"""The protocol of one answer: its bounds, and that what was streamed is what was meant (S0-10 to
S0-14). Each piece is checked before it is told; what follows from a fault is the run's.
"""

from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

from loopwright.errors import ProtocolError
from loopwright.providers.contract import ModelRequest, StreamEnd, StreamEvent, StreamPiece
from loopwright.providers.reading import closing
from loopwright.settings import Settings
from loopwright.state.call_ids import CALL_BLOCKS
from loopwright.state.messages import ABORTED, ERROR, STOP, TOOL_USE, Call, calls, stop_reason
from loopwright.text import joined
from loopwright.tools.arguments import ArgumentRules, violations


@dataclass
class Text:
    """Texts side by side; one that is empty counts as a text too."""

    parts: list[str] = field(default_factory=list)


Block = Text | Call


async def checked(
    source: AsyncIterator[StreamEvent], request: ModelRequest, settings: Settings, used: set[str]
) -> AsyncIterator[StreamEvent]:
    """The events of an answer as far as they keep the rules; raises ProtocolError at the first that
    does not, which is then not passed on.

    `used` are the ids of the calls in the transcript.
    """
    check = AnswerCheck(request.id, settings, used)
    async with closing(source) as events:
        async for event in events:
            check.admit(event)
            yield event


def bounds_answers(settings: Settings) -> bool:
    """Whether these settings ask anything of an answer."""
    limits = settings.limits
    bounds = (limits.chunks, limits.text, limits.blocks)
    return settings.protocol == "strict" or any(bound is not None for bound in bounds)


class AnswerCheck:
    """One answer while it comes in. `admit` each event; it raises ProtocolError."""

    def __init__(self, request_id: str, settings: Settings, used: Collection[str] = ()) -> None:
        self._request_id = request_id
        self._limits = settings.limits
        self._strict = settings.protocol == "strict"
        self._rules = ArgumentRules().within(settings.limits)
        self._used = used
        self._chunks = self._characters = 0
        self._half = ""
        """The first half of a surrogate pair at the end of the last text."""
        self._blocks: list[Block] = []
        self._calls: dict[int, int] = {}
        """Where in the blocks the call of a stream's block stands."""

    def admit(self, event: StreamEvent) -> None:
        """Take the next event."""
        if self._strict and event.request_id not in (None, self._request_id):
            raise ProtocolError(
                f"an answer to request {event.request_id!r} came in request {self._request_id!r}"
            )
        if isinstance(event, StreamPiece):
            self._admit_piece(event)
        elif isinstance(event, StreamEnd) and stop_reason(event.message) not in (ERROR, ABORTED):
            self._admit_end(event.message)

    def _admit_piece(self, piece: StreamPiece) -> None:
        self._chunks += 1
        _require_at_most("pieces", self._chunks, self._limits.chunks)
        if piece.kind == "text_delta":
            self._add_text(piece.delta)
        elif piece.kind.startswith("tool_call"):
            self._add_call(piece)
        _require_at_most("blocks", len(self._blocks), self._limits.blocks)

    def _add_text(self, delta: str) -> None:
        text = self._blocks[-1] if self._blocks else None
        if not isinstance(text, Text):
            self._half, text = "", Text()
            self._blocks.append(text)
        together = joined(self._half + delta)
        self._characters += len(together) - len(self._half)
        self._half = together[-1:] if "\ud800" <= together[-1:] <= "\udbff" else ""
        _require_at_most("code points of text", self._characters, self._limits.text)
        text.parts.append(delta)

    def _add_call(self, piece: StreamPiece) -> None:
        if piece.index not in self._calls:
            self._calls[piece.index] = len(self._blocks)
            self._blocks.append(Call("", "", None))
        if piece.call is not None:
            if self._strict:
                self._require_call(piece.call)
            self._blocks[self._calls[piece.index]] = piece.call

    def _admit_end(self, message: AIMessage) -> None:
        content, blocks = _content(message), list(_blocks(message))
        texts = ["".join(block.parts) for block in blocks if isinstance(block, Text)]
        unplaced = len(calls(message)) - sum(map(_is_call, content))
        _require_at_most("blocks", len(content) + max(unplaced, 0), self._limits.blocks)
        _require_at_most(
            "code points of text", sum(len(joined(text)) for text in texts), self._limits.text
        )
        if self._strict:
            self._require_sound(message)
            self._require_same(blocks, is_placed=unplaced == 0)

    def _require_sound(self, message: AIMessage) -> None:
        made, reason = calls(message), stop_reason(message)
        if reason not in (STOP, TOOL_USE):
            raise ProtocolError(f"the answer stopped for {reason!r}, which is no reason to go on")
        if bool(made) is not (reason == TOOL_USE):
            raise ProtocolError(f"the answer stopped for {reason!r} with {len(made)} tool calls")
        for name in (message.id, message.response_metadata.get("id")):
            if name is not None and not name.strip():
                raise ProtocolError("the answer has a blank id")
        counts: Any = message.usage_metadata or {}
        if any(isinstance(count, int) and count < 0 for count in counts.values()):
            raise ProtocolError(f"the answer reports a negative usage: {counts}")
        taken = set(self._used)
        for call in made:
            self._require_call(call)
            if call.id in taken:
                raise ProtocolError(f"the id {call.id!r} belongs to another call already")
            taken.add(call.id)

    def _require_call(self, call: Call) -> None:
        if not call.id.strip() or not call.name.strip():
            raise ProtocolError(
                f"a call has a blank id or names no tool: {call.id!r} {call.name!r}"
            )
        if call.error is not None:
            raise ProtocolError(f"call {call.id!r} is broken: {call.error}")
        if found := violations(call.arguments, self._rules):
            raise ProtocolError(f"the arguments of call {call.id!r}: {'; '.join(found.values())}")

    def _require_same(self, final: list[Block], *, is_placed: bool) -> None:
        """A final message that keeps its calls apart from its texts does not say how they stood."""
        streamed = self._blocks if is_placed else list(_apart(self._blocks))
        if len(streamed) != len(final) or not all(map(_same_block, streamed, final)):
            raise ProtocolError("what was streamed is not what the final answer says")


def _require_at_most(what: str, count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise ProtocolError(f"the answer has more than {most:,} {what}")


def _blocks(message: AIMessage) -> Iterator[Block]:
    """Texts and calls of a final message in order, texts side by side as one."""
    waiting = calls(message)
    text: Text | None = None
    for item in _content(message):
        if _is_call(item) and waiting:
            if text is not None:
                yield text
            text = None
            yield waiting.pop(0)
        elif (part := _text_of(item)) is not None:
            text = text or Text()
            text.parts.append(part)
    if text is not None:
        yield text
    yield from waiting


def _content(message: AIMessage) -> list[str | dict[Any, Any]]:
    if isinstance(message.content, str):
        return [message.content] if message.content else []
    return message.content


def _is_call(item: str | dict[Any, Any]) -> bool:
    return isinstance(item, dict) and item.get("type") in CALL_BLOCKS


def _text_of(item: str | dict[Any, Any]) -> str | None:
    """The text of a content block, None for what is no text."""
    if isinstance(item, str):
        return item
    return str(item.get("text", "")) if item.get("type") == "text" else None


def _apart(blocks: list[Block]) -> Iterator[Block]:
    """The same blocks with all texts as one, in front of the calls."""
    texts = [block for block in blocks if isinstance(block, Text)]
    if texts:
        yield Text([part for text in texts for part in text.parts])
    yield from (block for block in blocks if isinstance(block, Call))


def _same_block(streamed: Block, final: Block) -> bool:
    if isinstance(streamed, Text) or isinstance(final, Text):
        both = isinstance(streamed, Text) and isinstance(final, Text)
        return both and joined("".join(streamed.parts)) == joined("".join(final.parts))  # type: ignore[union-attr]
    if not streamed.id:  # its arguments came as text, of which the final call was made
        return True
    names = (streamed.id, streamed.name) == (final.id, final.name)
    return names and same_json(streamed.arguments, final.arguments)


def same_json(a: Any, b: Any) -> bool:
    """Whether two JSON values say the same: the order of keys is free, true is not 1 (S0-12)."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)
