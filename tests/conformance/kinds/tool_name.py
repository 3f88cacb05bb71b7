"""Kind `tool-name`: tools of any name, called over HTTP under the names that servers take."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loopwright import RunResult, Tool, ToolContext, ToolResult
from loopwright.events import MessageUpdate, ToolExecutionStart
from loopwright.testing import Response
from loopwright.testing.http import ServerRequest
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import rows, served, text


@dataclass
class Called:
    """What became of calls: who ran, what events called them, what was sent."""

    names: list[str]
    ran: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    requests: list[ServerRequest] = field(default_factory=list)
    result: RunResult | None = None

    @property
    def sent(self) -> list[str]:
        """The names in the requests: of tools, of calls in the history."""
        tools = [tool["function"]["name"] for tool in self.requests[0].body["tools"]]
        made = [c for row in rows(self.requests[-1]) for c in row.get("tool_calls", [])]
        return tools + [call["function"]["name"] for call in made]


async def drive(case: Case) -> Sequence[str]:
    """Let the model call every tool by the name that it was given, or the name of the case."""
    given = case.input
    if unknown := unknown_keys("input", given, ["names", "policy"]):
        return unknown
    if not given.get("policy", "default").startswith("default"):
        return [f"unknown policy {given['policy']!r}"]
    wanted = case.expect.get("model_calls")
    called = Called(given["names"])
    tools = [_tool(name, called.ran) for name in given["names"]]
    replies: list[Any] = [lambda body: _calls([wanted] if wanted else _offered(body)), "fine"]
    async with served(replies, tools=tools) as (agent, server):
        async for event in agent.stream("go"):
            if isinstance(event, ToolExecutionStart):
                called.told.append(event.tool_name)
            elif isinstance(event, MessageUpdate) and event.update == "tool_call_start":
                called.streamed.append(str(event.tool_name))
        called.stored = [c["name"] for m in agent.messages() for c in getattr(m, "tool_calls", [])]
        called.requests = server.requests
    return unmet(case.expect, called, CHECKS)


def _tool(name: str, ran: list[str]) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append(name)
        return ToolResult(content="ok")

    return Tool(name=name, description="", parameters={"type": "object"}, execute=execute)


def _offered(body: Any) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


def _calls(names: list[str]) -> Response:
    return Response(calls=[(f"c{at}", name, {}) for at, name in enumerate(names)])


def _match(called: Called, pattern: str) -> str | None:
    return equal([name for name in called.sent if not re.fullmatch(pattern, name)], [])


def _unique(called: Called, wanted: bool) -> str | None:
    names = _offered(called.requests[0].body)
    return equal(len(set(names)) == len(called.names), wanted)


def _maps_back(called: Called, wanted: bool) -> str | None:
    names = sorted(called.names)
    seen = {
        "ran": sorted(called.ran),
        "told": sorted(called.told),
        "streamed": sorted(called.streamed),
        "stored": sorted(called.stored),
    }
    wrong = {where: found for where, found in seen.items() if found != names}
    return equal(not wrong, wanted) and f"{wrong}, expected {names}"


def _lists(called: Called, names: list[str]) -> str | None:
    (said,) = [text(row) for row in rows(called.requests[-1], "tool")]
    return equal([name for name in names if name not in said], [])


def _goes_on(called: Called, wanted: bool) -> str | None:
    return equal(len(called.requests) == 2, wanted)


def _model_calls(called: Called, wanted: str) -> str | None:
    return equal(called.stored, [wanted])


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "all_match": _match,
    "unique": _unique,
    "call_maps_back": _maps_back,
    "model_calls": _model_calls,
    "answered_with_error_listing": _lists,
    "run_continues": _goes_on,
}
