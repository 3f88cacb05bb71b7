"""The starting transcript: read into frozen messages, and everything that is wrong with it (S0-04,
S0-05). Whether calls and results belong together is the core's to say (`state.linking`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.presets.course.protocol import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    TranscriptFault,
    UserMessage,
    frozen,
    plain,
)
from loopwright.settings import Limits
from loopwright.state.linking import link_faults
from loopwright.state.transcript import FaultKind
from loopwright.text import joined
from loopwright.tools.arguments import ArgumentRules, violations

CODES: dict[FaultKind, str] = {
    "duplicate_call_id": "DUPLICATE_TOOL_CALL_ID",
    "duplicate_result": "DUPLICATE_TOOL_RESULT",
    "orphan_result": "ORPHAN_TOOL_RESULT",
    "result_before_call": "TOOL_RESULT_BEFORE_CALL",
    "unanswered_call": "MISSING_TOOL_RESULT",
    "wrong_result_name": "TOOL_NAME_MISMATCH",
}
"""The course's word for each fault that the core finds."""


@dataclass
class Transcript:
    """A starting transcript as far as it could be read."""

    limits: Limits
    messages: list[Message] = field(default_factory=list)
    faults: list[TranscriptFault] = field(default_factory=list)
    core: list[AnyMessage] = field(default_factory=list)
    """One message of the core for each; what could not be read is left out of it."""

    _broken_calls: set[str] = field(default_factory=set)
    _broken_results: set[str] = field(default_factory=set)

    def fault(self, code: str, text: str) -> None:
        """Note a fault of the message that is being read."""
        self.faults.append(TranscriptFault(code, len(self.core), text))

    @property
    def all_faults(self) -> tuple[TranscriptFault, ...]:
        """What could not be read, and what does not belong together."""
        found = link_faults(
            self.core, broken_calls=self._broken_calls, broken_results=self._broken_results
        )
        return (
            *self.faults,
            *(TranscriptFault(CODES[f.kind], f.at, f"{f.kind}: call {f.id!r}") for f in found),
        )

    def add(self, given: Any) -> None:
        """Read the next message: one of `protocol`, or its JSON form."""
        before = len(self.faults)
        made, core = self._read(_json(given))
        self.core.append(core)
        if made is not None and len(self.faults) == before:
            self.messages.append(made)

    def _read(self, given: Any) -> tuple[Message | None, AnyMessage]:
        role = given.get("role") if isinstance(given, Mapping) else None
        if role not in ("user", "assistant", "toolResult"):
            self.fault("INVALID_MESSAGE", f"no message has the role {role!r}")
        elif not _is_named(given.get("id")):
            self.fault("INVALID_MESSAGE", "the message has no id")
        elif role == "user":
            return self._user(given)
        else:
            return self._assistant(given) if role == "assistant" else self._result(given)
        return None, HumanMessage("")

    def _user(self, given: Mapping[str, Any]) -> tuple[Message, AnyMessage]:
        content = given.get("content")
        if not isinstance(content, str):
            self.fault("INVALID_MESSAGE", "the content of a user message is a text")
            content = ""
        return UserMessage(given["id"], content), HumanMessage(content, id=given["id"])

    def _assistant(self, given: Mapping[str, Any]) -> tuple[Message | None, AnyMessage]:
        content = given.get("content")
        if not isinstance(content, list | tuple):
            self.fault("INVALID_MESSAGE", "the content of an answer is a list of blocks")
            return None, HumanMessage("")
        blocks = [block for item in content if (block := self._block(_json(item))) is not None]
        characters = sum(len(joined(b.text)) for b in blocks if isinstance(b, TextBlock))
        if len(content) > (self.limits.blocks or len(content)):
            self.fault("INVALID_MESSAGE", "the answer has too many blocks")
        if characters > (self.limits.text or characters):
            self.fault("INVALID_MESSAGE", "the answer has too much text")
        message = AssistantMessage(given["id"], tuple(blocks))
        return message, core_answer(message)

    def _block(self, given: Any) -> Block | None:
        kind = given.get("type") if isinstance(given, Mapping) else None
        if kind == "toolCall":
            return self._call(given)
        if kind == "text" and isinstance(given.get("text"), str):
            return TextBlock(given["text"])
        self.fault("INVALID_MESSAGE", f"no block of an answer has the type {kind!r}")
        return None

    def _call(self, given: Mapping[str, Any]) -> ToolCall | None:
        id, name, arguments = given.get("id"), given.get("name"), thawed(given.get("arguments"))
        before = len(self.faults)
        if not _is_named(id):
            self.fault("INVALID_MESSAGE", "a call has no id")
        if not _is_named(name):
            self.fault("EMPTY_TOOL_NAME", "a call names no tool")
        if found := violations(arguments, ArgumentRules().within(self.limits)):
            self.fault("INVALID_TOOL_ARGUMENTS", "; ".join(found.values()))
        if len(self.faults) == before:
            return ToolCall(str(id), str(name), frozen(arguments))
        if _is_named(id):
            self._broken_calls.add(str(id))
        return None

    def _result(self, given: Mapping[str, Any]) -> tuple[Message | None, AnyMessage]:
        call_id, name, content = (given.get(k) for k in ("toolCallId", "toolName", "content"))
        is_error = given.get("isError")
        before = len(self.faults)
        if not _is_named(call_id):
            self.fault("INVALID_MESSAGE", "a result names no call")
        if not _is_named(name):
            self.fault("EMPTY_TOOL_NAME", "a result names no tool")
        if not isinstance(content, str):
            self.fault("INVALID_MESSAGE", "the content of a result is a text")
        if not isinstance(is_error, bool | None):
            self.fault("INVALID_MESSAGE", "a result is an error or it is none")
        if len(self.faults) > before:
            if _is_named(call_id):
                self._broken_results.add(str(call_id))
            return None, HumanMessage("")
        message = ToolResultMessage(
            given["id"], str(call_id), str(name), str(content), is_error is True
        )
        return message, core_result(message)


def read(messages: Any, limits: Limits) -> Transcript:
    """Read a starting transcript: no more of it than may be there. Never raises."""
    transcript = Transcript(limits)
    if not isinstance(messages, list | tuple):
        transcript.fault("INVALID_TRANSCRIPT", "the transcript is a list of messages")
        return transcript
    most = limits.initial_messages
    if most is not None and len(messages) > most:
        transcript.fault("INVALID_TRANSCRIPT", f"at most {most:,} messages may be given")
        return transcript
    for message in messages:
        transcript.add(message)
    return transcript


def core_answer(message: AssistantMessage) -> AIMessage:
    """An answer as the core keeps it: its blocks in order, and its calls."""
    calls = [
        {"type": "tool_call", "id": b.id, "name": b.name, "args": plain(b.arguments)}
        for b in message.content
        if isinstance(b, ToolCall)
    ]
    waiting = iter(calls)
    content: list[Any] = [
        {"type": "text", "text": b.text} if isinstance(b, TextBlock) else next(waiting)
        for b in message.content
    ]
    return AIMessage(content, id=message.id, tool_calls=calls)


def core_result(message: ToolResultMessage) -> ToolMessage:
    """A result as the core keeps it."""
    return ToolMessage(
        message.content,
        id=message.id,
        tool_call_id=message.tool_call_id,
        name=message.tool_name,
        status="error" if message.is_error else "success",
    )


def thawed(arguments: Any) -> Any:
    """Arguments that a run has frozen before, as plain JSON; anything else as it is."""
    return plain(arguments) if isinstance(arguments, MappingProxyType) else arguments


def _json(given: Any) -> Any:
    """The JSON form of a message or block of `protocol`, one level deep."""
    match given:
        case UserMessage():
            return {"role": given.role, "id": given.id, "content": given.content}
        case AssistantMessage():
            return {"role": given.role, "id": given.id, "content": given.content}
        case ToolResultMessage():
            return {
                "role": given.role,
                "id": given.id,
                "toolCallId": given.tool_call_id,
                "toolName": given.tool_name,
                "content": given.content,
                "isError": given.is_error,
            }
        case TextBlock():
            return {"type": given.type, "text": given.text}
        case ToolCall():
            named = {"type": given.type, "id": given.id, "name": given.name}
            return {**named, "arguments": given.arguments}
    return given


def _is_named(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
