"""How the offline model reads the messages it is sent: questions, tool results, its answers.

What a question means lives in `rules`, what a tool's text says in `results`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


@dataclass(frozen=True)
class Call:
    """A tool call to make, or one that was made."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A tool call that has its result."""

    call: Call
    text: str
    failed: bool


@dataclass
class Exchange:
    """One question, the steps taken for it, and the answer; None while it is open."""

    question: str
    steps: list[Step] = field(default_factory=list)
    answer: str | None = None


def exchanges(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """The transcript as exchanges in order. Calls without a result are left out."""
    found: list[Exchange] = []
    calls: dict[str, Call] = {}
    for message in messages:
        if isinstance(message, HumanMessage):
            found.append(Exchange(message.text))
        elif not found:
            continue
        elif isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id)
            if call is not None:
                step = Step(call, message.text, message.status == "error")
                found[-1].steps.append(step)
        elif isinstance(message, AIMessage):
            calls.update((str(c["id"]), Call(c["name"], c["args"])) for c in message.tool_calls)
            if not (message.tool_calls or message.invalid_tool_calls):
                found[-1].answer = message.text
    return found


def open_exchanges(found: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges at the end that have no answer: a question and what was added since."""
    answered = [at for at, exchange in enumerate(found) if exchange.answer is not None]
    return list(found[answered[-1] + 1 :] if answered else found)


def fingerprint(messages: Sequence[BaseMessage]) -> str:
    """The same for the same transcript, and different for every longer one: makes call ids."""
    digest = hashlib.sha256()
    for message in messages:
        made = message.tool_calls if isinstance(message, AIMessage) else []
        part = f"{message.type}\0{message.text}\0{[c['id'] for c in made]}\0"
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]
