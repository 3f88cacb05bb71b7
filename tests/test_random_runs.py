"""Random runs on one thread, with everything that can go wrong: what always holds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from loopwright import Agent
from loopwright.errors import ContinuationError
from loopwright.events import AgentEnd, AnyEvent, MessageEnd, Repair, TurnEnd
from loopwright.hooks import Hooks
from loopwright.settings import Limits, Settings
from loopwright.state.transcript import faults
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.support.providers import Scripted, ScriptedProvider, said
from tests.support.tasks import no_task_left

TOOLS = ["ok", "slow", "fails", "ends", "aborts", "steers", "follows up", "sends along"]
CALLED = [*TOOLS, "unknown", "broken"]
HOOKS = ["transform_context", "convert_to_llm", "should_stop_after_turn", "prepare_next_turn"]


@dataclass(frozen=True)
class Plan:
    """One run: how it starts, what the model answers, and what goes wrong on the way."""

    start: str
    answers: Sequence[Any]
    queued: Sequence[tuple[str, int]]
    fails_at: int | None
    hook: str | None
    cancelled_at: int | None


ANSWERS = st.one_of(
    st.just("text"),
    st.lists(st.sampled_from(CALLED), min_size=1, max_size=4),
    st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["error", "aborted", "raise", "length"]),
)
SOMETIMES = st.none() | st.integers(0, 40)
PLANS = st.builds(
    Plan,
    start=st.sampled_from(["prompt", "prompt", "continue"]),
    answers=st.lists(ANSWERS, max_size=4),
    queued=st.lists(
        st.tuples(st.sampled_from(["steer", "follow_up"]), st.integers(1, 3)), max_size=2
    ),
    fails_at=SOMETIMES,
    hook=st.none() | st.sampled_from(HOOKS),
    cancelled_at=SOMETIMES,
)
SETTINGS = st.builds(
    Settings,
    tool_execution=st.sampled_from(["parallel", "sequential"]),
    steering_mode=st.sampled_from(["one_at_a_time", "all"]),
    follow_up_mode=st.sampled_from(["one_at_a_time", "all"]),
    limits=st.builds(Limits, turns=st.integers(1, 6)),
)


@dataclass
class World:
    """An agent whose model and tools play plans, and what was queued on it."""

    settings: Settings
    trace: Path | None = None
    queued: Counter[str] = field(default_factory=Counter)
    plan: Plan | None = None
    hook_fails: bool = False

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider()
        hooks = Hooks(**{name: self._hook(name) for name in HOOKS})
        tools = [self._tool(name) for name in TOOLS]
        self.agent = Agent(
            self.provider,
            tools,
            thread="t",
            settings=self.settings,
            hooks=hooks,
            trace=self.trace,
        )

    def _hook(self, name: str) -> Callable[..., Any]:
        def hook(given: Any, *rest: Any) -> Any:
            if self.plan is not None and self.plan.hook == name:
                raise LookupError(name)
            return given if name in ("transform_context", "convert_to_llm") else None

        return hook

    def _tool(self, name: str) -> Tool:
        async def execute(arguments: Any, context: ToolContext) -> ToolResult:
            if name == "slow":
                for _ in range(5):
                    await asyncio.sleep(0)
            if name == "fails":
                raise OSError("failed")
            if name == "aborts":
                context.signal.abort()
            if name in ("steers", "follows up"):
                self.queue("steer" if name == "steers" else "follow_up", 1)
            extra = tuple(self.message(1)) if name == "sends along" else ()
            return ToolResult(content=name, terminate=name == "ends" or None, messages=extra)

        schema = {"type": "object"}
        safe = name.replace(" ", "_")
        return Tool(name=safe, description=name, parameters=schema, execute=execute)

    def message(self, count: int) -> list[Any]:
        return [HumanMessage(f"sent along {n}") for n in range(count)]

    def queue(self, way: str, count: int) -> None:
        for _ in range(count):
            text = f"queued {self.queued.total()}"
            self.queued[text] += 1
            getattr(self.agent, way)(text)

    def answer(self, number: int, given: Any) -> Scripted:
        if given == "text":
            return f"answer {number}"
        if given == "raise":
            return RuntimeError("no route")
        if given == "length":
            return said("", (f"c{number}", "ok", {}), stop="length")
        if isinstance(given, str):
            return said("half", (f"c{number}", "ok", {}), stop=given)
        calls = [
            (f"c{number}-{n}", name.replace(" ", "_"), "{" if name == "broken" else {})
            for n, name in enumerate(given)
        ]
        return said("", *calls, stop=None if isinstance(given, list) else "stop")

    async def play(self, plan: Plan) -> tuple[list[AnyEvent], BaseException | None]:
        """Run the plan; the events, and what came out of it instead of a result."""
        self.plan = plan
        self.provider.script = [self.answer(n, a) for n, a in enumerate(plan.answers)]
        self.provider.script += ["the end"] * 12
        for way, count in plan.queued:
            self.queue(way, count)
        heard: list[AnyEvent] = []

        async def listen(event: AnyEvent) -> None:
            heard.append(event)
            if len(heard) - 1 == plan.cancelled_at:
                task.cancel()
                await asyncio.sleep(0)
            if len(heard) - 1 == plan.fails_at:
                raise KeyError("listener")

        remove = self.agent.subscribe(listen)
        run = self.agent.prompt("hi") if plan.start == "prompt" else self.agent.continue_()
        task = asyncio.ensure_future(run)
        await asyncio.wait([task])
        remove()
        self.plan = None
        return heard, asyncio.CancelledError() if task.cancelled() else task.exception()


def check(events: list[AnyEvent], error: BaseException | None) -> None:
    """What holds for the events of one run."""
    assert [event.sequence for event in events] == list(range(len(events)))
    assert len({event.run_id for event in events}) <= 1
    if isinstance(error, ContinuationError):
        assert events == []
        return
    assert events[0].type == "agent_start"
    if error is not None:
        assert isinstance(error, asyncio.CancelledError | KeyError)
        return
    end = events[-1]
    assert isinstance(end, AgentEnd)
    answers = [e for e in events if isinstance(e, MessageEnd) and isinstance(e.message, AIMessage)]
    ends = [event for event in events if isinstance(event, TurnEnd)]
    assert len({e.message.id for e in ends}) == len(ends)
    # A fault leaves its turn without an end; behind an abort it counts as cancelled.
    if end.reason != "fault" and (end.reason != "aborted" or end.error is None):
        assert [e.message.id for e in ends] == [answer.message.id for answer in answers]
        assert sum(isinstance(event, AgentEnd) for event in events) == 1


@pytest.mark.anyio
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=SETTINGS, plans=st.lists(PLANS, min_size=1, max_size=4))
async def test_whatever_happens_a_thread_stays_sound(chosen: Settings, plans: list[Plan]) -> None:
    async with no_task_left():
        world = World(chosen)
        for plan in plans:
            check(*await world.play(plan))
        healthy = Plan("prompt", [], [], None, None, None)
        events, error = await world.play(healthy)
        assert error is None
        check(events, error)

        ledger = world.agent.messages()
        assert not faults(ledger)
        texts = Counter(str(message.text) for message in ledger)
        waiting = world.agent.queued("steering") + world.agent.queued("follow_up")
        left = Counter(str(message.text) for message in waiting)
        assert all(texts[text] + left[text] == 1 for text in world.queued)
        assert sum(isinstance(event, Repair) for event in events) <= 1
        await world.agent.aclose()
