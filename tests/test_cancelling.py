"""A cancel at every step of a run: it ends soon, leaves no task, and the thread loads valid.

Sequential traces and a parallel batch, under each cancel policy, on a real database.
"""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from loopwright import Agent
from loopwright.errors import FatalToolError
from loopwright.events import AgentEnd, AnyEvent
from loopwright.outcome import RunResult
from loopwright.settings import Limits, Settings
from loopwright.state.transcript import faults
from loopwright.testing import Gate, Response, ScriptedModel
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.support.graphs import told
from tests.support.providers import ScriptedProvider, said
from tests.support.tasks import no_task_left

Policy = Literal["record", "leave", "cut"]
Execution = Literal["parallel", "sequential"]

MOST_EVENTS_BEHIND = 20
"""Events behind the signal: the rest of a batch of three calls with their results, and the end of
one more request.
"""

CALLS: list[tuple[str, str, Any]] = [("c1", "work", {}), ("c2", "work", {}), ("c3", "work", {})]
TRACES: dict[str, tuple[list[Any], int]] = {
    "a tool, then an answer": ([Response(calls=CALLS[:1]), "done"], 2),
    "three calls, one step": ([Response(text="I look.", calls=CALLS), "no"], 1),
    "three calls, two steps": ([Response(text="I look.", calls=CALLS), "done"], 2),
}


@dataclass
class Steps:
    """Counts the points of a run, and cancels it at one of them."""

    agent: Agent
    thread: str
    stop_at: int | None = None
    count: int = 0
    behind: list[AnyEvent] = field(default_factory=list)
    stopped: bool = False

    def reached(self) -> None:
        """One more point."""
        if self.count == self.stop_at:
            self.agent.abort(thread=self.thread)
            self.stopped = True
        self.count += 1

    def heard(self, event: AnyEvent) -> None:
        """An event is a point too."""
        if self.stopped:
            self.behind.append(event)
        self.reached()

    async def work(self, arguments: Any, context: ToolContext) -> ToolResult:
        """A tool that takes its time, and gives up when it is asked to."""
        for _ in range(3):
            self.reached()
            await asyncio.sleep(0)
            if context.signal.aborted:
                break
        return ToolResult(content="worked")


async def cancelled(agent: Agent, script: list[Any], steps: Steps) -> RunResult:
    """Run a script on a thread of its own and cancel it at a step; then let another run load it."""
    settings, schema = agent.settings, {"type": "object"}
    agent.tools = [Tool(name="work", description="Work.", parameters=schema, execute=steps.work)]
    agent.model = ScriptedModel(script)
    remove = agent.subscribe(steps.heard)
    async with no_task_left():
        result = await asyncio.wait_for(agent.prompt("Go.", thread=steps.thread), 30)
    remove()
    agent.settings = replace(settings, repair_policy="always")
    agent.model = ScriptedModel(["Loaded."])
    loaded = await agent.prompt("And now?", thread=steps.thread)
    assert loaded.final_text == "Loaded."
    assert not faults(agent.messages(steps.thread))
    agent.settings = settings
    return result


@pytest.mark.anyio
@pytest.mark.parametrize("policy", ["record", "leave", "cut"])
@pytest.mark.parametrize(
    ("trace", "execution"),
    [
        ("a tool, then an answer", "sequential"),
        ("three calls, one step", "sequential"),
        ("three calls, two steps", "sequential"),
        ("three calls, two steps", "parallel"),
    ],
)
async def test_a_cancel_at_any_step_ends_soon_and_leaves_a_thread_that_loads(
    trace: str, execution: Execution, policy: Policy, tmp_path: Path
) -> None:
    script, turns = TRACES[trace]
    settings = Settings(cancel_policy=policy, tool_execution=execution, limits=Limits(turns=turns))
    async with Agent("offline", database=tmp_path / "t.db", settings=settings) as agent:
        whole = Steps(agent, "whole")
        await cancelled(agent, script, whole)
        for step in range(whole.count - 1):  # the last point is the end of the run
            steps = Steps(agent, str(step), step)
            result = await cancelled(agent, script, steps)
            assert steps.stopped
            assert len(steps.behind) <= MOST_EVENTS_BEHIND
            assert isinstance(steps.behind[-1], AgentEnd)
            if policy == "cut":
                assert (result.status, result.reason) == ("cancelled", "aborted")


@pytest.mark.anyio
async def test_a_thread_that_was_cut_is_repaired_without_being_asked(tmp_path: Path) -> None:
    provider = ScriptedProvider(said("", CALLS[0]))
    gate = Gate()

    async def work() -> None:
        """Work for ever."""
        await gate.wait()

    settings = Settings(cancel_policy="cut")
    async with Agent(provider, [work], database=tmp_path / "t.db", settings=settings) as agent:
        run = agent.prompt("Go.")
        await gate.reached()
        agent.abort()
        await run
        assert [m.type for m in agent.messages()] == ["human", "ai"]
        provider.script = ["I see."]
        await agent.prompt("And now?")
        assert not faults(agent.messages())


@pytest.mark.anyio
async def test_a_cut_waits_for_no_model_and_keeps_nothing_of_its_answer() -> None:
    gate = Gate()
    provider = ScriptedProvider([gate])
    async with Agent(provider, settings=Settings(cancel_policy="cut")) as agent:
        async with no_task_left():
            run = agent.prompt("Go.")
            await gate.reached()
            agent.abort()
            result = await run
        assert (result.status, [m.type for m in agent.messages()]) == ("cancelled", ["human"])


@pytest.mark.anyio
async def test_a_cut_beats_a_fatal_tool_and_the_turn_limit() -> None:
    async with Agent(
        ScriptedProvider(said("", CALLS[0])),
        settings=Settings(cancel_policy="cut", limits=Limits(turns=1)),
    ) as agent:

        def work() -> None:
            """Fail for good while the run is cancelled."""
            agent.abort()
            raise FatalToolError("beyond repair")

        agent.tools = [work]
        result = await agent.prompt("Go.")
        assert (result.status, [m.type for m in agent.messages()]) == ("cancelled", ["human", "ai"])


@pytest.mark.anyio
async def test_a_parallel_batch_that_is_cut_keeps_what_had_finished() -> None:
    gate, finished = Gate(), asyncio.Event()

    def quick() -> str:
        """Be done at once."""
        return "quick"

    async def slow() -> None:
        """Never be done."""
        await gate.wait()

    script = said("", ("c1", "slow", {}), ("c2", "quick", {}))
    settings = Settings(cancel_policy="cut")
    async with Agent(ScriptedProvider(script), [quick, slow], settings=settings) as agent:

        def heard(event: AnyEvent) -> None:
            if event.type == "tool_execution_end":
                finished.set()

        agent.subscribe(heard)
        run = agent.prompt("Go.")
        await gate.reached()
        await finished.wait()
        agent.abort()
        await run
        assert [getattr(m, "tool_call_id", m.type) for m in agent.messages()] == [
            "human",
            "ai",
            "c2",
        ]


@pytest.mark.anyio
async def test_a_fatal_tool_fails_the_run_and_its_call_may_have_taken_effect() -> None:
    def burn() -> None:
        """Fail for good."""
        raise FatalToolError("beyond repair")

    script = said("", ("c1", "burn", {}), ("c2", "burn", {}))
    settings = Settings(tool_execution="sequential")
    async with Agent(ScriptedProvider(script, "no"), [burn], settings=settings) as agent:
        events = [event async for event in agent.stream("Go.")]
        end = events[-1]
        assert isinstance(end, AgentEnd)
        assert end.error == {"kind": "FatalToolError", "message": "beyond repair"}
        assert told(events).count("tool_execution_start c2") == 0
        assert not faults(agent.messages())
