"""A cancel at every step of a run (S0-22 to S0-24): at each event, and at each point in between.

The same at every step of the default runtime's runs is in `tests/test_cancelling.py`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from loopwright.presets.course import (
    AgentEvent,
    RunResult,
    ToolCall,
    ToolRegistry,
    ToolResultMessage,
    run_agent_loop,
)
from loopwright.signals import AbortSignal
from tests.support.course import (
    Scripted,
    ScriptedModel,
    call,
    calling,
    echo_tool,
    texts,
    types,
    user,
)
from tests.support.tasks import no_task_left

ECHOES = [call("echo", f"c{n}", {"value": n}) for n in (1, 2, 3)]


@dataclass
class Steps:
    """Counts the points of a run, and cancels it at one of them."""

    stop_at: int | None = None
    signal: AbortSignal = field(default_factory=AbortSignal)
    count: int = 0
    events_before: int = 0
    events: list[AgentEvent] = field(default_factory=list)

    def reached(self, point: str) -> None:
        """One more point."""
        if self.count == self.stop_at:
            self.signal.abort(f"at {point}")
            self.events_before = len(self.events)
        self.count += 1

    def observe(self, event: AgentEvent) -> None:
        """An event is a point too."""
        self.events.append(event)
        self.reached(event.type)


def quoted_one() -> list[Scripted]:
    return [calling("r1", ECHOES[0]), texts("r2", "The sum is 42.")]


def quoted_two() -> list[Scripted]:
    return [calling("r1", *ECHOES), texts("r2", "must not run")]


TRACES: dict[str, tuple[Callable[[], list[Scripted]], int]] = {
    "a tool, then an answer": (quoted_one, 2),
    "three calls, one step": (quoted_two, 1),
    "three calls, two steps": (quoted_two, 2),
}


async def traced(name: str, steps: Steps) -> RunResult:
    """Run a trace; the events are those that were told."""
    answers, max_steps = TRACES[name]
    stream = run_agent_loop(
        messages=[user(), user()],
        model=ScriptedModel(answers(), steps.reached),
        tools=ToolRegistry([echo_tool([], steps.reached)]),
        max_steps=max_steps,
        signal=steps.signal,
        observer=steps.observe,
    )
    result = await stream.result()
    assert [event async for event in stream] == steps.events
    return result


@pytest.mark.anyio
@pytest.mark.parametrize("name", TRACES)
async def test_a_cancel_at_any_step_ends_the_run_there(name: str) -> None:
    whole = Steps()
    await traced(name, whole)
    assert whole.count > 10
    for step in range(whole.count - 1):  # the last point is the end of the run
        steps = Steps(step)
        async with no_task_left():
            result = await asyncio.wait_for(traced(name, steps), 20)
        told = types(steps.events)
        assert result.status == "cancelled"
        assert (result.reason or "").startswith("at ")
        assert told == [*types(whole.events)[: steps.events_before], "run.finished"]
        assert_complete(result, told)


def assert_complete(result: RunResult, told: list[str]) -> None:
    """Only complete messages, and no result but those that were told."""
    results = [m for m in result.messages if isinstance(m, ToolResultMessage)]
    assert len(results) == told.count("tool.finished")
    assert [m.tool_call_id for m in results] == [c.id for c in ECHOES[: len(results)]]
    assert len({m.id for m in results}) == len(results)


@pytest.mark.anyio
async def test_a_cancel_before_the_start_asks_nobody() -> None:
    signal = AbortSignal()
    signal.abort("early")
    model = ScriptedModel([texts("r1", "no")])
    stream = run_agent_loop(
        messages=[user()], model=model, tools=ToolRegistry(), max_steps=1, signal=signal
    )
    result = await stream.result()
    assert (result.status, result.reason, result.messages) == ("cancelled", "early", (user(),))
    assert types([event async for event in stream]) == ["run.finished"]
    assert model.call_count == 0


class Hung:
    """A model whose stream never comes on; counts how often it is closed, and fails late."""

    def __init__(self, signal: AbortSignal) -> None:
        self.signal = signal
        self.closed = 0
        self.pending: asyncio.Future[ToolCall] = asyncio.get_running_loop().create_future()

    def stream(self, request: object, signal: AbortSignal) -> "Hung":
        return self

    def __aiter__(self) -> "Hung":
        return self

    async def __anext__(self) -> ToolCall:
        self.signal.abort("hung")
        return await asyncio.shield(self.pending)

    async def aclose(self) -> None:
        self.closed += 1

    async def result(self) -> object:
        raise AssertionError("a cancelled answer has no end")


@pytest.mark.anyio
async def test_a_hung_model_is_closed_once_and_what_it_does_later_is_not_heard() -> None:
    signal = AbortSignal()
    async with no_task_left():
        model = Hung(signal)
        stream = run_agent_loop(
            messages=[user()],
            model=model,  # type: ignore[arg-type]
            tools=ToolRegistry(),
            max_steps=1,
            signal=signal,
        )
        assert (await stream.result()).status == "cancelled"
        model.pending.set_exception(RuntimeError("too late"))
    assert model.closed == 1
