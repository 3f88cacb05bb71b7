"""The tools of a scenario: what each does when it is called, and what of it the trace shows.

When and with which arguments they are called is the runtime's business.
"""

import asyncio
from copy import deepcopy
from typing import Any

from loopwright import Tool, ToolContext, ToolResult
from tests.conformance.pi.shorthand import Json, blocks, text_block
from tests.conformance.pi.world import UNIT, Scripted, World, compact, units


def tools(world: World) -> list[Tool]:
    """All tools of the world's scenario."""
    return [_tool(world, spec) for spec in world.scenario.get("tools", [])]


def _tool(world: World, spec: Json) -> Tool:
    async def execute(arguments: Json, context: ToolContext) -> ToolResult:
        run = {**spec.get("run", {}), **spec.get("byId", {}).get(context.call_id, {})}
        return await _Body(world, spec["name"], run, arguments, context).run()

    def prepare(arguments: Any) -> Any:
        return _prepared(world, spec, arguments)

    return Tool(
        name=spec["name"],
        description=spec["name"],
        parameters=spec.get("params", {"type": "object"}),
        execute=execute,
        execution_mode=spec.get("mode"),
        prepare_arguments=prepare if "prepare" in spec else None,
    )


def _prepared(world: World, spec: Json, arguments: Json) -> Json:
    """The raw arguments as the scenario rewrites them."""
    world.log.append(f"prepareArguments:{spec['name']}")
    how = spec["prepare"]
    if "throw" in how:
        raise Scripted(how["throw"])
    names: Json = how.get("rename", {})
    renamed = {names.get(name, name): value for name, value in arguments.items()}
    return {**renamed, **how.get("set", {})}


class _Body:
    """One run of a tool's body."""

    def __init__(
        self, world: World, name: str, run: Json, arguments: Json, context: ToolContext
    ) -> None:
        self._world, self._run, self._context = world, run, context
        self._name, self._arguments = name, arguments

    async def run(self) -> ToolResult:
        """Write the trace around what the scenario says the body does."""
        self._enter()
        try:
            await self._world.fire("tool", self._context.call_id)
            await self._work()
        except Scripted:
            self._log("throw")
            raise
        finally:
            self._send_late()
        self._log("return")
        return self._result()

    def _enter(self) -> None:
        self._world.tool_runs.append(
            {
                "id": self._context.call_id,
                "name": self._name,
                "args": deepcopy(self._arguments),
                "aborted": self._context.signal.aborted,
            }
        )
        self._log("enter")

    def _log(self, what: str) -> None:
        self._world.log.append(f"tool:{what}:{self._context.call_id}")

    async def _work(self) -> None:
        for partial in self._run.get("updates", []):
            self._context.update(_partial(partial))
        if "gate" in self._run:
            await self._world.gate(self._run["gate"]).wait()
        if "delay" in self._run:
            await units(self._run["delay"])
        if "waitAbort" in self._run:
            await self._context.signal.wait()
            if self._run["waitAbort"] == "throw":
                raise Scripted("tool saw abort")
        if "throw" in self._run:  # with or without `throwString`: its text is all there is of it
            raise Scripted(self._run["throw"])

    def _send_late(self) -> None:
        if "lateUpdate" not in self._run:
            return

        def send() -> None:
            self._log("lateUpdate")
            self._context.update(_partial(self._run["lateUpdate"]))

        asyncio.get_running_loop().call_later(UNIT, send)

    def _result(self) -> ToolResult:
        text = self._run.get("text", f"{self._name}({compact(self._arguments)})")
        content = blocks({"images": 0, **self._run, "text": text})
        return ToolResult(
            content="" if self._run.get("noContent") else content,
            details=self._run.get("details", {}),
            terminate=self._run.get("terminate"),
            added_tools=tuple(self._run.get("added", ())),
        )


def _partial(partial: str | Json) -> ToolResult:
    if isinstance(partial, str):
        return ToolResult(content=[text_block(partial)], details={})
    return ToolResult(content=blocks(partial), details=partial.get("details", {}))
