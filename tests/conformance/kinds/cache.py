"""Kind `cache`: that what requests have in common stays the same, byte for byte."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright import Agent, Tool, ToolContext, ToolResult
from loopwright.runs import Dependencies
from loopwright.testing import OpenAIServer, Response
from loopwright.testing.clock import VirtualClock
from loopwright.testing.http import ServerRequest
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import rows, served, speaking

PROMPT = "You are an agent. Be brief."
FIELDS: dict[str, Any] = {name: {"type": "string"} for name in ("path", "text", "mode")}


@dataclass(frozen=True)
class Sent:
    """The requests of a case, or the bytes of the tools in each."""

    requests: list[ServerRequest]
    tools: tuple[str, ...] = ()


async def drive(case: Case) -> Sequence[str]:
    """Send the same things in another order, at another time, or once more."""
    given = case.input
    known = ["orders", "policy", "events", "repeat", "turn_times"]
    if unknown := unknown_keys("input", given, known):
        return unknown
    if given.get("policy", "tool_order=name") != "tool_order=name":
        return [f"unknown policy {given['policy']!r}"]
    if "orders" in given:
        tools = [await _elsewhere(order, seed) for seed, order in enumerate(given["orders"], 1)]
        return unmet(case.expect, Sent([], tuple(tools)), CHECKS)
    if "events" in given:
        with TemporaryDirectory() as folder:
            requests = await _played(given["events"], Path(folder) / "threads.db")
    elif "turn_times" in given:
        requests = await _at(given["turn_times"])
    else:
        requests = await _repeated(given["repeat"])
    return unmet(case.expect, Sent(requests), CHECKS)


async def _elsewhere(order: list[str], seed: int) -> str:
    """The tools of a request that a process of its own has sent."""
    script = (
        f"import asyncio; from {__name__} import tools_of; print(asyncio.run(tools_of({order})))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, env=environment
    )
    output, _ = await child.communicate()
    return output.decode()


async def tools_of(order: list[str]) -> str:
    """The bytes of the tools of a request, registered in this order."""
    async with served(["fine"], tools=[_tool(name) for name in order]) as (agent, server):
        await agent.prompt("go")
        return json.dumps(server.requests[0].body["tools"], ensure_ascii=False)


def _tool(name: str) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="ok")

    parameters = {"type": "object", "properties": FIELDS, "required": ["path"]}
    return Tool(name=name, description=f"does {name}", parameters=parameters, execute=execute)


async def _played(events: list[str], database: Path) -> list[ServerRequest]:
    """The events one after the other on one thread; each is a run whose tool does what it says."""
    doing: list[str] = []
    agents: list[Agent] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if doing[-1] == "steer":
            agents[-1].steer("rather so")
        elif doing[-1] == "follow-up":
            agents[-1].follow_up("and then")
        elif doing[-1] == "cancel":
            agents[-1].abort()
        return ToolResult(content=f"result of {doing[-1]}")

    def reply(body: Any) -> Any:
        number = len(server.requests)
        asks = body["messages"][-1]["role"] == "user" and doing[-1] != "resume"
        return Response(calls=[(f"c{number}", "act", {})]) if asks else "fine"

    tool = replace(_tool("act"), parameters={"type": "object"}, execute=execute)
    async with OpenAIServer(reply for _ in range(99)) as server:
        for event in events:
            doing.append(event)
            parts: Any = {"tools": [tool], "system_prompt": PROMPT, "database": database}
            async with speaking(server, **parts) as agent:
                agents.append(agent)
                await _happen(agent, event)
        return server.requests


async def _happen(agent: Agent, event: str) -> None:
    if event == "resume":
        agent.steer("go on")
        await agent.continue_()
    elif event in ("turn", "steer", "follow-up", "cancel"):
        await agent.prompt(f"do this: {event}")
    else:
        raise ValueError(f"unknown event {event!r}")


class _Timed(Agent):
    """An agent whose runs go by another clock."""

    clock = VirtualClock()

    def _dependencies(self) -> Dependencies:
        return replace(super()._dependencies(), clock=self.clock)


async def _at(times: list[str]) -> list[ServerRequest]:
    """A turn at each of these times of day; one that is earlier than the last is of the next."""
    clock = _Timed.clock = VirtualClock(datetime(2026, 1, 1).timestamp())
    parts: Any = {"system_prompt": PROMPT, "kind": _Timed}
    async with served(("fine" for _ in times), **parts) as (agent, server):
        for time in times:
            hours, minutes, seconds = map(int, time.split(":"))
            now = datetime.fromtimestamp(clock.now())
            then = now.replace(hour=hours, minute=minutes, second=seconds)
            clock.advance((then.timestamp() - now.timestamp()) % 86_400)
            await agent.prompt("what is new?")
        return server.requests


async def _repeated(times: int) -> list[ServerRequest]:
    """The same stored thread, asked the same again and again."""
    history: list[AnyMessage] = [
        HumanMessage("hello", id="u"),
        AIMessage("", id="a", tool_calls=[{"name": "b", "args": {"path": "x"}, "id": "c"}]),
        ToolMessage("ok", id="r", tool_call_id="c", name="b"),
    ]
    requests = []
    for _ in range(times):
        parts: Any = {"tools": [_tool("b"), _tool("a")], "system_prompt": PROMPT}
        async with served(["fine"], stored=history, **parts) as (agent, server):
            await agent.prompt("go on")
            requests += server.requests
    return requests


def _same_tools(sent: Sent, wanted: bool) -> str | None:
    return equal(len(set(sent.tools)) == 1 and sent.tools[0].strip() != "", wanted)


def _same_system(sent: Sent, wanted: bool) -> str | None:
    systems = {json.dumps(rows(request, "system")) for request in sent.requests}
    return equal(len(sent.requests) > 1 and len(systems) == 1, wanted)


def _grow(sent: Sent, wanted: bool) -> str | None:
    """Each request begins with all messages of the one before."""
    lists = [[json.dumps(row) for row in rows(request)] for request in sent.requests]
    pairs = pairwise(lists)
    return equal(len(lists) > 1 and all(b[: len(a)] == a for a, b in pairs), wanted)


def _same_bodies(sent: Sent, wanted: bool) -> str | None:
    bodies = {request.raw for request in sent.requests}
    return equal(len(sent.requests) > 1 and len(bodies) == 1, wanted)


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "tools_bytes_equal": _same_tools,
    "system_bytes_equal": _same_system,
    "earlier_messages_bytes_equal": _grow,
    "bodies_equal": _same_bodies,
}
