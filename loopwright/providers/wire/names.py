"""Names of tools on the wire: any name of ours as one that every server takes, and back again.

Which tools there are is the registry's to say.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Self

from langchain_core.messages import AIMessage

from loopwright.providers.contract import StreamEnd, StreamEvent, StreamPiece

LONGEST = 64
_TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""OpenAI and Anthropic answer any other name with a 400."""

_NOT_TAKEN = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = 10


def wire_name(name: str, salt: str = "") -> str:
    """The name as servers take it: itself, or what is left of it with a hash of the whole name.

    It depends on the name alone, so that it is the same in every process and beside any tools.
    """
    if _TAKEN.fullmatch(name) and not salt:
        return name
    whole = f"{name}{salt}".encode("utf-8", "surrogatepass")
    head = _NOT_TAKEN.sub("_", name).strip("_-") or "tool"
    return f"{head[: LONGEST - _DIGITS - 1]}_{sha256(whole).hexdigest()[:_DIGITS]}"


@dataclass(frozen=True)
class ToolNames:
    """The wire names of the tools of a request, each another one.

    A tool whose own name is what another one's would become keeps it: the other's is made anew.
    """

    _own: dict[str, str] = field(default_factory=dict)
    """Names of ours by wire name, where the two differ."""

    _wire: dict[str, str] = field(default_factory=dict)
    """The reverse, where a name is not just `wire_name`."""

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """The wire names of these tools; their order does not matter."""
        wanted = sorted(set(names))
        used = {name for name in wanted if wire_name(name) == name}
        own: dict[str, str] = {}
        wire: dict[str, str] = {}
        for name in wanted:
            salt, sent = "", wire_name(name)
            if sent == name:
                continue
            while sent in used:
                salt += "+"
                sent = wire_name(name, salt)
            used.add(sent)
            own[sent] = name
            if salt:
                wire[name] = sent
        return cls(own, wire)

    def sent(self, name: str) -> str:
        """The wire name of a tool, or of whatever a model has called."""
        return self._wire.get(name) or wire_name(name)

    def own(self, name: str) -> str:
        """The tool that a model means by a name; one that is none of ours stays as it is."""
        return self._own.get(name, name)

    def read(self, event: StreamEvent) -> StreamEvent:
        """An event of an answer with the names that are ours."""
        if not self._own:
            return event
        if isinstance(event, StreamPiece):
            call = event.call and replace(event.call, name=self.own(event.call.name))
            name = event.tool_name and self.own(event.tool_name)
            return replace(event, tool_name=name, call=call)
        if isinstance(event, StreamEnd):
            return replace(event, message=self._read_message(event.message))
        return event

    def _read_message(self, message: AIMessage) -> AIMessage:
        update: dict[str, Any] = {
            "tool_calls": [{**c, "name": self.own(c["name"])} for c in message.tool_calls],
            "invalid_tool_calls": [
                {**c, "name": self.own(c["name"] or "")} for c in message.invalid_tool_calls
            ],
        }
        return message.model_copy(update=update)
