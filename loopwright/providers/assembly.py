"""From raw chunks of a langchain model to one message that can be trusted, piece by piece.

langchain's own merging is not used: it completes broken arguments, so that cut calls would run.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata

from loopwright.errors import ModelError
from loopwright.events import UpdateKind
from loopwright.providers import content, finish
from loopwright.providers.arguments import ArgumentsError, parse_arguments
from loopwright.providers.contract import StreamPiece
from loopwright.providers.fragments import CallRouter, Fragment, PartialCall
from loopwright.providers.usage import merged
from loopwright.spending import COST, cost_of
from loopwright.state.messages import ABORTED, ERROR, error_metadata, new_id
from loopwright.text import clean_text


@dataclass(eq=False)
class _Block:
    """A text or thinking block while it streams, or a block of another kind as it came."""

    kind: Literal["text", "thinking", "other"]
    position: int
    key: Any = None
    parts: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    held: str = ""
    """The first half of a surrogate pair whose second half is still to come."""

    def take(self, delta: str) -> str:
        """Add to the block; gives what may be shown of it now."""
        delta, self.held = self.held + delta, ""
        if "\ud800" <= delta[-1:] <= "\udbff":
            delta, self.held = delta[:-1], delta[-1]
        shown = clean_text(delta)
        self.parts.append(shown)
        return shown

    def form(self) -> dict[str, Any]:
        """The block as it is stored."""
        if self.kind == "other":
            return self.fields
        text = "".join(self.parts) + clean_text(self.held)
        if self.kind == "text":
            return {"type": "text", "text": text}
        extras = {"extras": self.fields} if self.fields else {}
        return {"type": "reasoning", "reasoning": text, **extras}


class Answer:
    """One answer of a model while it comes in.

    `add` every chunk, then `close`, then take `message`; or `failed` at any time, which keeps the
    text and drops the calls.
    """

    def __init__(self, *, provider: str, model: str, api: str = "") -> None:
        self.message_id: str | None = None
        """Id of the first chunk, by which LangGraph tells that a message was streamed; a fresh one
        if it has none. None before the first chunk."""
        self.finish_reason: str | None = None
        """The provider's own word for why it stopped; None as long as none came."""
        self.whole = False
        """Whether the model said in another way than by a finish reason that this was all."""
        self._producer = {"model": model, "provider": provider, **({"api": api} if api else {})}
        self._blocks: list[_Block] = []
        self._open: _Block | None = None
        self._router = CallRouter()
        self._positions: dict[PartialCall, int] = {}
        self._chunk = 0
        self._usage: UsageMetadata | None = None
        self._cost: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer has an end; without one it was cut, whatever it looks like."""
        return self.finish_reason is not None or self.whole

    @property
    def calls(self) -> int:
        """How many tool calls have begun."""
        return len(self._router.calls)

    def add(self, message: AIMessage) -> list[StreamPiece]:
        """Take in a chunk, or a whole message of a model that does not stream."""
        self._chunk += 1
        if self.message_id is None:
            self.message_id = clean_text(message.id or "").strip() or new_id()
        self.finish_reason = finish.said(message.response_metadata) or self.finish_reason
        if message.usage_metadata is not None:
            self._usage = merged(self._usage, message.usage_metadata)
        reported = cost_of(message)
        self._cost = self._cost if reported is None else reported
        fragments = _fragments(message)
        if not isinstance(message, AIMessageChunk):
            self.whole = True
        elif message.chunk_position == "last" and (message.content or fragments):
            # langchain itself ends every stream with an empty last chunk, cut ones too.
            self.whole = True
        pieces: list[StreamPiece] = []
        for part in content.parts(message):
            pieces += self._write(part)
        for fragment in fragments:
            pieces += self._route(fragment)
        return pieces

    def close(self) -> list[StreamPiece]:
        """The pieces that end the blocks still open. Only for an answer that was not cut short."""
        pieces = list(self._end_block())
        for call, position in self._positions.items():
            pieces.append(_piece("tool_call_end", position, call))
        return pieces

    def message(self) -> AIMessage:
        """The complete message. Every call is either runnable or says why it is not."""
        runnable, broken = self._checked_calls()
        reason = finish.stop_reason(self.finish_reason, has_calls=bool(runnable or broken))
        return self._made(reason, tool_calls=runnable, invalid_tool_calls=broken)

    def failed(self, error: ModelError) -> AIMessage:
        """The message of an answer that broke off: what text there is, no calls, the error."""
        return self._made(ERROR, **error_metadata(error))

    def aborted(self) -> AIMessage:
        """The message of an answer that was cancelled: what text there is, no calls."""
        return self._made(ABORTED, error_message="Request was aborted", error_kind=ABORTED)

    def _write(self, part: content.Part) -> Iterator[StreamPiece]:
        block = self._open
        if block is None or (block.kind, block.key) != (part.kind, part.key):
            if part.is_empty:
                return
            yield from self._end_block()
            block = _Block(part.kind, self._position(), part.key)
            self._blocks.append(block)
            self._open = block
            if part.kind != "other":
                yield _piece(_START[part.kind], block.position)
        block.fields.update(part.fields)
        if part.kind == "other":
            self._open = None
        elif part.text and (shown := block.take(part.text)):
            yield _piece(_DELTA[part.kind], block.position, delta=shown)

    def _end_block(self) -> Iterator[StreamPiece]:
        block, self._open = self._open, None
        if block is None or block.kind == "other":
            return
        if block.held:
            rest, block.held = clean_text(block.held), ""
            block.parts.append(rest)
            yield _piece(_DELTA[block.kind], block.position, delta=rest)
        yield _piece(_END[block.kind], block.position)

    def _route(self, fragment: Fragment) -> Iterator[StreamPiece]:
        call = self._router.add(fragment, self._chunk)
        if call is None:
            return
        if call not in self._positions:
            yield from self._end_block()
            self._positions[call] = self._position()
            yield _piece("tool_call_start", self._positions[call], call)
        if fragment.text:
            yield _piece("tool_call_delta", self._positions[call], call, clean_text(fragment.text))

    def _position(self) -> int:
        return len(self._blocks) + len(self._positions)

    def _checked_calls(self) -> tuple[list[ToolCall], list[InvalidToolCall]]:
        runnable: list[ToolCall] = []
        broken: list[InvalidToolCall] = []
        taken: set[str] = set()
        cut = finish.why_cut(self.finish_reason)
        for call in self._router.calls:
            id, name = clean_text(call.id or "").strip(), clean_text(call.name)
            if not id or id in taken:
                id = new_id()
            taken.add(id)
            checked = _checked(call.text, name, cut)
            if isinstance(checked, dict):
                runnable.append(ToolCall(name=name, args=checked, id=id, type="tool_call"))
            else:
                text = clean_text(call.text)
                broken.append(
                    InvalidToolCall(
                        name=name, args=text, id=id, error=checked, type="invalid_tool_call"
                    )
                )
        return runnable, broken

    def _made(self, reason: str, **fields: Any) -> AIMessage:
        errors = {key: fields.pop(key) for key in tuple(fields) if key.startswith("error_")}
        about = {"stop_reason": reason, **self._producer}
        if self.finish_reason is not None:
            about["finish_reason"] = self.finish_reason
        cost = {} if self._cost is None else {COST: self._cost}
        return AIMessage(
            content=_content(block.form() for block in self._blocks),
            id=self.message_id or new_id(),
            usage_metadata=self._usage,
            response_metadata={**about, **cost, **errors},
            **fields,
        )


_START: dict[str, UpdateKind] = {"text": "text_start", "thinking": "thinking_start"}
_DELTA: dict[str, UpdateKind] = {"text": "text_delta", "thinking": "thinking_delta"}
_END: dict[str, UpdateKind] = {"text": "text_end", "thinking": "thinking_end"}


def _piece(
    kind: UpdateKind, index: int, call: PartialCall | None = None, delta: str = ""
) -> StreamPiece:
    if call is None:
        return StreamPiece(kind=kind, index=index, delta=delta)
    return StreamPiece(
        kind=kind, index=index, delta=delta, tool_call_id=call.id, tool_name=call.name or None
    )


def _checked(text: str, name: str, cut: str | None) -> dict[str, Any] | str:
    """The arguments of a call that may run, or why it must not."""
    if cut is not None:
        return cut
    if not name:
        return "the call does not name a tool"
    try:
        return parse_arguments(text)
    except ArgumentsError as error:
        return f"{error}; send the whole call again"


def _content(blocks: Iterable[dict[str, Any]]) -> str | list[str | dict[Any, Any]]:
    """A string if there is nothing but text, else the blocks that hold something."""
    kept: list[str | dict[Any, Any]] = [b for b in blocks if b != {"type": "text", "text": ""}]
    if all(isinstance(block, dict) and block.get("type") == "text" for block in kept):
        return "".join(block["text"] for block in kept if isinstance(block, dict))
    return kept


def _fragments(message: AIMessage) -> list[Fragment]:
    """The pieces of tool calls in a chunk, or the calls of a whole message."""
    if isinstance(message, AIMessageChunk):
        made = [
            Fragment(c["index"], _named(c["id"]), _named(c["name"]), c["args"] or "")
            for c in message.tool_call_chunks
        ]
    else:
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        made = [
            Fragment(index, _named(c["id"]), _named(c["name"]), _argument_text(c["args"]))
            for index, c in enumerate(calls)
        ]
    legacy = message.additional_kwargs.get("function_call")
    if not made and isinstance(legacy, dict):
        made = [Fragment(None, None, _named(legacy.get("name")), legacy.get("arguments") or "")]
    return made


def _argument_text(arguments: dict[str, Any] | str | None) -> str:
    """The text that the arguments were, so that those of whole messages are checked as well."""
    return arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments)


def _named(value: str | None) -> str | None:
    return value if value and value.strip() else None
