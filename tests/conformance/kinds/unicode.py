"""Kind `unicode`: text that is no valid Unicode, from tools, users, models and old sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright import Agent, RunResult, Settings, Tool, ToolContext, ToolResult
from loopwright.settings import Limits
from loopwright.testing import Response
from loopwright.testing.http import ServerRequest
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import is_valid, rows, served, text


@dataclass(frozen=True)
class Sent:
    """The requests of a case and its runs; what the tool got; what a second agent reads back."""

    requests: list[ServerRequest]
    results: list[RunResult]
    arguments: list[dict[str, Any]]
    reread: list[AnyMessage]
    role: str

    @property
    def said(self) -> str:
        """What the message in question says in the last request."""
        return text(next(row for row in rows(self.requests[-1]) if row["role"] == self.role))


async def drive(case: Case) -> Sequence[str]:
    """Bring the text in on its way, then run once more, and look at every body."""
    given = case.input
    known = ["tool_result", "raw_arguments", "text", "limit_utf16_units", "history", "user"]
    if unknown := unknown_keys("input", given, known):
        return unknown
    with TemporaryDirectory() as folder:
        sent = await _sent(given, Path(folder) / "threads.db")
    return unmet(case.expect, sent, CHECKS)


async def _sent(given: dict[str, Any], database: Path) -> Sent:
    arguments: list[dict[str, Any]] = []

    async def execute(seen: dict[str, Any], context: ToolContext) -> ToolResult:
        arguments.append(seen)
        return ToolResult(content=given.get("tool_result", given.get("text", "ok")))

    tool = Tool(name="t", description="", parameters={"type": "object"}, execute=execute)
    calls = [("c", "t", given.get("raw_arguments", {}))]
    from_tool = {"tool_result", "raw_arguments", "text"} & given.keys()
    replies: list[Any] = [Response(calls=calls), "fine"] if from_tool else ["fine"]
    limits = Limits(result_characters=given.get("limit_utf16_units", 1_000_000))
    parts: dict[str, Any] = {"tools": [tool], "database": database}
    parts["settings"] = Settings(limits=limits)
    history = [*map(_stored, given.get("history", []))]
    stored = [HumanMessage("hello", id="u"), *_called(history), *history] if history else []
    async with served([*replies, "fine"], stored=stored, **parts) as (agent, server):
        results = [await agent.prompt(prompt) for prompt in (given.get("user", "go"), "go on")]
        async with Agent("offline", database=database, thread=agent.thread) as other:
            reread = other.messages()
    role = "user" if "user" in given else "tool"
    return Sent(server.requests, results, arguments, reread, role)


def _stored(row: dict[str, str]) -> AnyMessage:
    if row["role"] == "tool":
        return ToolMessage(row["text"], id="r", tool_call_id="c")
    kind: Any = {"user": HumanMessage, "assistant": AIMessage}[row["role"]]
    message: AnyMessage = kind(row["text"])
    return message


def _called(history: list[AnyMessage]) -> list[AnyMessage]:
    """The answer that has made the call of a stored result."""
    if not any(isinstance(message, ToolMessage) for message in history):
        return []
    return [AIMessage("", id="a", tool_calls=[{"name": "t", "args": {}, "id": "c"}])]


def _valid(sent: Sent, wanted: bool) -> str | None:
    return equal(bool(sent.requests) and all(map(is_valid, sent.requests)), wanted)


def _says(sent: Sent, wanted: str) -> str | None:
    return equal(sent.said, wanted)


def _works(sent: Sent, wanted: bool) -> str | None:
    return equal(all(result.status == "completed" for result in sent.results), wanted)


def _arguments(sent: Sent, wanted: dict[str, Any]) -> str | None:
    return equal(sent.arguments, [wanted])


def _no_half(sent: Sent, wanted: bool) -> str | None:
    halves = [c for c in sent.said if "\ud800" <= c <= "\udfff"]
    return _valid(sent, True) or equal(not halves, wanted)


def _stored_ok(sent: Sent, wanted: bool) -> str | None:
    return equal(any(isinstance(message, ToolMessage) for message in sent.reread), wanted)


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "wire_json_valid": _valid,
    "wire_text": _says,
    "next_turns_work": _works,
    "resume_ok": _works,
    "args": _arguments,
    "no_lone_surrogate": _no_half,
    "checkpoint_write_ok": _stored_ok,
}
