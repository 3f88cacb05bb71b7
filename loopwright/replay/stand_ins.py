"""What stands in for models, tools, hooks and queues in a replay: each gives what was recorded.

The order of everything is kept where the graph leaves it open: which of several tools that run at
the same time is done first, and when the run was cancelled.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.types import interrupt

from loopwright.errors import ContextOverflowError, ModelError, ProtocolError
from loopwright.hooks import Ask, Hooks, NextTurn, ToolCallContext, TurnContext
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    SchemaSupport,
    StreamEnd,
    StreamEvent,
)
from loopwright.replay.feed import Feed
from loopwright.signals import AbortSignal
from loopwright.state.messages import calls, failure_of
from loopwright.telemetry.lines import Line
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult


class NothingRecorded(Exception):
    """The run asks for more than the recorded one did."""


@dataclass
class Stage:
    """Where a replay stands: what was played so far, and what is going on."""

    feed: Feed
    signal: AbortSignal | None = None
    played: list[Line] = field(default_factory=list)
    asked: int = 0
    """Requests that were made."""

    answering: bool = False
    started: list[int] = field(default_factory=list)
    """The calls of the batch whose bodies were started, by position."""

    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at every step that was played."""

    def write(self, line: Line) -> None:
        """Take a step that was played."""
        self.played.append(line)
        self.moved.set()
        self.cancel_if_due()

    def count(self, type: str) -> int:
        """How many steps of a type were played."""
        return sum(line["type"] == type for line in self.played)

    def cancel_if_due(self) -> None:
        """Cancel the run if the recorded one was cancelled here, while the same was going on."""
        recorded = self.feed.steps
        due = recorded[len(self.played)] if len(self.played) < len(recorded) else None
        if due is None or due["type"] != "abort" or self.signal is None:
            return
        going_on: list[Any] = sorted(set(self.started) - self.done())
        if due.get("during") == going_on + (["model"] if self.answering else []):
            self.signal.abort(str(due.get("reason", "")))

    def done(self) -> set[int]:
        """The calls of the batch that have their results."""
        done: set[int] = set()
        for line in reversed(self.played):
            if line["type"] == "model":
                break
            if line["type"] == "tool":
                done.add(line["position"])
        return done


class RecordedModel(Provider):
    """A provider that answers with what was recorded, in its order."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        requests = stage.feed.requests
        self.id = str(requests[0].get("provider")) if requests else "recorded"

    def context_window(self, model: str) -> int | None:
        """What it was for the request that comes next."""
        requests = self._stage.feed.requests
        line: Line = next(iter([*requests[self._stage.asked :], *requests[-1:]]), {})
        window = line.get("context_window")
        return window if isinstance(window, int) else None

    def schema_support(self, model: str) -> SchemaSupport:
        """The recorded settings say how the answer was asked for."""
        return "untested"

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next answer. Raises what was raised, and NothingRecorded behind the last one."""
        stage = self._stage
        if stage.asked == len(stage.feed.requests):
            raise NothingRecorded(f"the recorded run made {stage.asked} requests, this one more")
        line = stage.feed.requests[stage.asked]
        stage.asked += 1
        stage.started, stage.answering = [], True
        try:
            stage.cancel_if_due()
            answer = self._answer(line)
            yield StreamEnd(message=answer, failure=self._failure(line, answer))
        finally:
            stage.answering = False

    def _answer(self, line: Line) -> Any:
        answer = self._stage.feed.answers[line["step"]]
        if answer is not None:
            return answer
        error = line.get("error") or (self._stage.feed.recorded.end or {}).get("error") or {}
        raise _raised(str(error.get("kind", "NothingRecorded")), str(error.get("message")))

    def _failure(self, line: Line, answer: Any) -> ModelError | None:
        """Why the recorded run sent the request again, if it did."""
        later = (step for step in self._stage.feed.steps if step["step"] > line["step"])
        following = next(later, {"type": ""})
        return failure_of(answer) if following["type"] in ("retry", "fallback") else None


def _raised(kind: str, text: str) -> Exception:
    """An exception of this name; of the loop's own, if it tells it from others."""
    own = {known.__name__: known for known in (ContextOverflowError, ProtocolError, ModelError)}
    return own[kind](text) if kind in own else type(kind, (Exception,), {})(text)


class RecordedClock:
    """Tells the time at which the recorded run did what comes next."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def now(self) -> float:
        """When the run began, before its first step."""
        steps, played = self._stage.feed.steps, len(self._stage.played)
        line = steps[min(played, len(steps) - 1)]
        began = line.get("started") or line["at"]
        return float(line["at"] if played else began)

    async def sleep(self, seconds: float) -> None:
        """Nothing waits in a replay."""


def recorded_tool(described: dict[str, Any], stage: Stage) -> Tool:
    """A tool that gives the recorded results. One that rewrote its arguments takes any."""
    known = {f.name for f in fields(Tool)} - {"execute", "prepare_arguments"}
    told = {name: value for name, value in described.items() if name in known}
    if described.get("prepare_arguments"):
        told["parameters"] = {"type": "object"}

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        answer = context.state["messages"][-1]
        position = [call.id for call in calls(answer)].index(context.call_id)
        stage.started.append(position)
        stage.cancel_if_due()
        await _turn_of(stage, position)
        return _result(stage, position)

    return Tool(**told, execute=execute)


async def _turn_of(stage: Stage, position: int) -> None:
    """Return when those that were done earlier, of the ones that are running, are done."""
    order = [at for asked, at in stage.feed.results if asked == stage.asked]
    mine = order.index(position) if position in order else len(order)
    await asyncio.sleep(0)  # the others of the batch start
    while set(order[:mine]) & set(stage.started) - stage.done():
        stage.moved.clear()
        await stage.moved.wait()


def _result(stage: Stage, position: int) -> ToolResult:
    line = stage.feed.results.get((stage.asked, position))
    if line is None:
        waiting = (stage.feed.recorded.end or {}).get("interrupts") or []
        for value in [item.get("value") for item in waiting if not _asks(item.get("value"))]:
            interrupt(value)
        return ToolResult(content="Nothing was recorded for this call.", is_error=True)
    return ToolResult(
        content=line["content"],
        details=line.get("details"),
        is_error=bool(line.get("is_error")),
        terminate=line.get("terminate"),
        messages=tuple(stage.feed.sent_along.get((stage.asked, position), ())),
    )


def _asks(value: Any) -> list[dict[str, Any]]:
    """What a person was asked about, in the value of an interrupt."""
    return list(value["asks"]) if isinstance(value, dict) and "asks" in value else []


def recorded_hooks(stage: Stage) -> Hooks:
    """Hooks that decide as the recorded ones did: when to stop, what comes next, whom to ask."""
    feed, end = stage.feed, stage.feed.recorded.end or {}
    names = feed.beginning.get("hooks") or []
    asks = [ask for item in end.get("interrupts") or [] for ask in _asks(item.get("value"))]

    def stop(turn: TurnContext) -> bool:
        due = end.get("reason") == "should_stop_after_turn"
        return due and stage.count("turn") == end.get("turns")

    def prepare(turn: TurnContext) -> NextTurn | None:
        coming = feed.requests[stage.asked : stage.asked + 1]
        told = ("model", "thinking_level", "system_prompt", "tools")
        return NextTurn(**{name: line.get(name) for line in coming for name in told})

    def ask(context: ToolCallContext) -> Ask | None:
        found = next((a for a in asks if a.get("call_id") == context.call.id), None)
        return (
            None
            if found is None
            else Ask(reason=found.get("reason", ""), details=found.get("details"))
        )

    return Hooks(
        should_stop_after_turn=stop if "should_stop_after_turn" in names else None,
        prepare_next_turn=prepare if "prepare_next_turn" in names else None,
        before_tool_call=ask if asks else None,
    )


def due(stage: Stage, queue: str) -> list[AnyMessage]:
    """What a poll of a queue finds: what was delivered at the turn that is being opened."""
    turn = stage.count("turn") + 1 if stage.count("model") else 1
    return stage.feed.queued.pop((queue, turn), [])
