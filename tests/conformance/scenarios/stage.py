"""An agent on a file whose run stops wherever a script can name a point, until it is let go.

The points: before a request to the model (`request`), inside a tool before and after its work
(`tool`, `tool_end`), behind the last token of an answer without calls (`answered`), inside a
streamed answer (`stream`), and before the run is closed (`agent_end`).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from loopwright import Agent, Hooks, LoopwrightError, Settings, ToolContext
from loopwright.events import AgentEnd, AnyEvent, MessageEnd, ToolExecutionEnd, ToolExecutionStart
from loopwright.ongoing import Ongoing
from loopwright.signals import AbortSignal
from loopwright.state.messages import calls
from loopwright.testing import Gate, Response, ScriptedModel
from tests.conformance.scenarios.record import Record

THREAD = "script"


@dataclass
class Stop:
    """Something of the run that waits at a point; `call` is the one whose body it is."""

    point: str
    call: str = ""
    gate: Gate = field(default_factory=Gate)


class Stage:
    """Start a run, bring it to a point, look at it, let it go on. Single-threaded.

    `free` lets everything pass: nothing stops any more.
    """

    def __init__(self, database: Path, settings: Settings) -> None:
        self.record = Record()
        self.held: list[Stop] = []
        self.alive: list[str] = []
        """The calls that were started and have no result yet."""
        self.batch, self.entered = 0, 0
        """How many calls the model made last, and how many of their bodies were entered."""
        self.over, self.refused, self.free = True, False, False
        self.cancelled, self.settled = 0.0, 0.0
        """When the last run was cancelled, and when it was over."""
        self.reply: str | Response | None = None
        self._moved = asyncio.Event()
        self._watcher: asyncio.Future[None] | None = None
        self._answers = 0
        self.model = ScriptedModel(repeat(self._answer))
        self.agent = Agent(
            self.model,
            [self._tool()],
            database=database,
            thread=THREAD,
            settings=settings,
            hooks=Hooks(transform_context=self._before_request),
        )
        self.agent.subscribe(self._listen)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Whatever has gone wrong, nothing holds the run up any more."""
        self.free = True
        self.let_go()

    # ---- what the run comes to

    def _answer(self, messages: list[BaseMessage]) -> str | Response:
        self.record.ask(messages)
        self._answers += 1
        reply, self.reply = self.reply, None
        return f"answer {self._answers}" if reply is None else reply

    def _tool(self) -> Callable[..., Any]:
        async def work(context: ToolContext, note: str = "") -> str:
            """Work until it is done, or the run is cancelled; what is done by then stands."""
            self.record.executed.append(context.call_id)
            self.entered += 1
            await self._stop("tool", context.call_id, context.signal)
            await self._stop("tool_end", context.call_id)
            self.record.finished.append(context.call_id)
            return f"done {context.call_id}"

        return work

    async def _before_request(
        self, messages: list[AnyMessage], signal: AbortSignal
    ) -> list[AnyMessage]:
        await self._stop("request")
        return messages

    async def _listen(self, event: AnyEvent) -> None:
        match event:
            case ToolExecutionStart():
                self.alive.append(event.tool_call_id)
            case ToolExecutionEnd():
                self.alive.remove(event.tool_call_id)
                self._moved.set()
            case MessageEnd(message=AIMessage()) if not calls(event.message):
                await self._stop("answered")
            case AgentEnd():
                end = {"run_id": event.run_id, "status": event.status, "reason": event.reason}
                self.record.ended.append({**end, "error": (event.error or {}).get("message", "")})
                await self._stop("agent_end")

    async def _stop(self, point: str, call: str = "", signal: AbortSignal | None = None) -> None:
        if self.free:
            return
        stop = Stop(point, call)
        self.hold(stop)
        try:
            await (signal.race(stop.gate.wait()) if signal else stop.gate.wait())
        finally:
            self.held = [other for other in self.held if other is not stop]
            self._moved.set()

    def hold(self, stop: Stop) -> None:
        """Something has come to a point."""
        self.held.append(stop)
        self._moved.set()

    # ---- moving it

    async def start(self, begin: Callable[[], Ongoing]) -> None:
        """Begin a run and bring it to its first point; `refused` if it could not begin.

        Raises what `begin` raises.
        """
        ongoing = begin()
        self.over, self.refused, self.alive = False, False, []
        self._watcher = asyncio.ensure_future(self._watch(ongoing))
        await self.until(lambda: bool(self.held) or self.over)

    async def _watch(self, ongoing: Ongoing) -> None:
        try:
            await ongoing
        except LoopwrightError as error:
            self.refused = True
            self.record.refusals.append(str(error))
        finally:
            self.over, self.settled = True, time.monotonic()
            self._moved.set()

    async def cancel(self) -> None:
        """Cancel the run that is going on, if there is one; what waits for that has noticed."""
        self.cancelled = time.monotonic()
        self.agent.abort()
        self.held = [stop for stop in self.held if stop.point != "stream"]
        await self.until(lambda: not self.at("tool"))

    async def until(self, true: Callable[[], bool]) -> None:
        """Return when something has become true of the run."""
        while not true():
            self._moved.clear()
            await self._moved.wait()

    def at(self, *points: str) -> bool:
        """Whether the run stands at one of these points."""
        return any(stop.point in points for stop in self.held)

    def let_go(self, *others: str) -> None:
        """Let everything go on that stands at a point, except at these."""
        for stop in [stop for stop in self.held if stop.point not in others]:
            self.held.remove(stop)
            stop.gate.open()

    async def advance(self, *points: str) -> bool:
        """Let the run go on until it stands at one of these points; False if it is over first."""
        while not self.at(*points):
            if self.over:
                return False
            self.let_go()
            await self.until(lambda: bool(self.held) or self.over)
        return True

    async def finish(self) -> None:
        """Let the run go on to its end; the model answers as long as it is asked."""
        await self.advance()
        if self._watcher is not None:
            await self._watcher

    @property
    def ending(self) -> bool:
        """Whether the run has given its answer or was cancelled, and is not over yet."""
        signal = self.agent.signal
        cancelled = signal is not None and signal.aborted
        return not self.over and (cancelled or self.at("answered", "agent_end"))

    @property
    def in_tools(self) -> bool:
        """Whether the body of every call that was started and is not over stands at a point."""
        inside = [stop.call for stop in self.held if stop.point in ("tool", "tool_end")]
        return bool(inside) and len(inside) == len(self.alive)
