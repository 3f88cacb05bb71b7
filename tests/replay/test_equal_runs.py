"""Whatever a run has gone through, its trace replays to the same steps, status and reason."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.types import interrupt

from loopwright import Agent
from loopwright.errors import ContextOverflowError
from loopwright.hooks import Ask, BeforeToolCall, Hooks, NextTurn
from loopwright.planning import plan_tool
from loopwright.presets.pi import PiAgent
from loopwright.replay import Replayed, areplay
from loopwright.settings import Limits, Settings
from loopwright.telemetry.reading import read
from loopwright.testing import Gate
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.support.providers import ScriptedProvider, said, steps
from tests.test_random_runs import PLANS, SETTINGS, Plan, World

CALL = said("I look.", ("c1", "look", {}))
PAID = CALL.model_copy(
    update={"usage_metadata": UsageMetadata(input_tokens=3, output_tokens=4, total_tokens=7)}
)
PAIR = said("", ("c1", "look", {}), ("c2", "wait", {}))


def look() -> str:
    """Look."""
    return "seen"


async def wait() -> str:
    """Take longer than looking."""
    for _ in range(5):
        await asyncio.sleep(0)
    return "waited"


async def quick() -> str:
    """Take no time."""
    return "quick"


def fail() -> str:
    """Go wrong."""
    raise OSError("no such thing")


async def end(arguments: Any, context: ToolContext) -> ToolResult:
    return ToolResult(content="enough", terminate=True, details={"a": 1})


async def send_along(arguments: Any, context: ToolContext) -> ToolResult:
    return ToolResult(content="see below", messages=(HumanMessage("a picture"),))


def tool(name: str, execute: Any, **options: Any) -> Tool:
    schema = {"type": "object"}
    return Tool(name=name, description=name, parameters=schema, execute=execute, **options)


TOOLS = [look, wait, quick, fail, tool("end", end), tool("send_along", send_along)]


def block(context: Any) -> BeforeToolCall:
    return BeforeToolCall(block=True, reason="not today", terminate=True)


def other_model(turn: Any) -> NextTurn:
    return NextTurn(system_prompt="Be brief.", tools=["look"], thinking_level="high")


ENDINGS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "completed answered": ([CALL, "done"], {}),
    "completed terminated": ([said("", ("c1", "end", {}))], {}),
    "limit max_turns": ([CALL, CALL], {"settings": Settings(limits=Limits(turns=2))}),
    "stopped should_stop_after_turn": (
        [CALL, CALL],
        {"hooks": Hooks(should_stop_after_turn=lambda turn: len(turn.messages) > 4)},
    ),
    "limit max_seconds": ([CALL, CALL], {"settings": Settings(limits=Limits(seconds=1e-6))}),
    "limit max_turns ": (
        [CALL, "what I know"],
        {"settings": Settings(limits=Limits(turns=1, last_answer=True))},
    ),
    "limit max_tokens": ([PAID, CALL], {"settings": Settings(limits=Limits(tokens=7))}),
    "limit max_calls": (
        [CALL, CALL],
        {"settings": Settings(limits=Limits(calls=2, reserved_calls=0))},
    ),
    "failed model_error": ([CALL, said("half", stop="error")], {}),
    "failed context_overflow": ([ContextOverflowError("too long")], {}),
    "failed fault": ([CALL, RuntimeError("no route")], {}),
    "cancelled aborted": ([CALL, said("", stop="aborted")], {}),
}
VARIANTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "parallel": ([PAIR, "done"], {}),
    "sequential": ([PAIR, "done"], {"settings": Settings(tool_execution="sequential")}),
    "a tool that fails": ([said("", ("c1", "fail", {})), "done"], {}),
    "an unknown tool": ([said("", ("c1", "nothing", {})), "done"], {}),
    "broken arguments": ([said("", ("c1", "look", "{")), "done"], {}),
    "wrong arguments": ([said("", ("c1", "look", {"a": 1})), "done"], {}),
    "an answer that was cut off": ([said("", ("c1", "look", {}), stop="length"), "done"], {}),
    "ids that come twice": ([CALL, CALL, "done"], {}),
    "messages sent along": ([said("", ("c1", "send_along", {})), "done"], {}),
    "a call that a hook blocks": ([CALL], {"hooks": Hooks(before_tool_call=block)}),
    "another next turn": ([CALL, "done"], {"hooks": Hooks(prepare_next_turn=other_model)}),
}


async def traced(folder: Path, script: list[Any], parts: dict[str, Any], *prompts: str) -> Path:
    """The trace of an agent with this script after these prompts."""
    file = folder / "runs.jsonl"
    provider = script[0] if isinstance(script[0], ScriptedProvider) else ScriptedProvider(*script)
    make: Callable[..., Agent] = parts.pop("make", Agent)
    tools = parts.pop("tools", TOOLS)
    async with make(provider, tools, "Be kind.", trace=file, thread="t", **parts) as agent:
        for prompt in prompts or ("hi",):
            await agent.prompt(prompt)
    return file


async def equal(file: Path, runs: int = 1) -> list[Replayed]:
    """The replayed runs, every one of which came out equal."""
    done = await areplay(file)
    assert [str(one.difference or one.skipped) for one in done] == ["None"] * runs
    assert [one.now for one in done] == [one.recorded for one in done]
    return done


@pytest.mark.anyio
@pytest.mark.parametrize("name", ENDINGS)
async def test_every_ending_replays_to_itself(name: str, tmp_path: Path) -> None:
    script, parts = ENDINGS[name]
    (done,) = await equal(await traced(tmp_path, script, dict(parts)))
    status, _, reason = name.partition(" ")
    assert done.recorded == f"{status} ({reason.strip()})"
    assert not done.notes


@pytest.mark.anyio
@pytest.mark.parametrize("name", VARIANTS)
async def test_whatever_happens_in_a_batch_is_replayed(name: str, tmp_path: Path) -> None:
    script, parts = VARIANTS[name]
    await equal(await traced(tmp_path, script, dict(parts)))


@pytest.mark.anyio
async def test_a_plan_that_goes_round_in_circles_is_replayed(tmp_path: Path) -> None:
    plans = [said("", (f"c{n}", "plan", {"steps": [f"step {n}"]})) for n in range(9)]
    file = await traced(tmp_path, [*plans, "done"], {"tools": [*TOOLS, plan_tool]})
    (done,) = await equal(file)
    assert done.recorded == "stopped (idle_revisions)"


@pytest.mark.anyio
async def test_an_answer_that_breaks_the_protocol_breaks_it_again(tmp_path: Path) -> None:
    strict = Settings(protocol="strict", limits=Limits(text=3))
    file = await traced(tmp_path, ["too long"], {"settings": strict})
    (done,) = await equal(file)
    assert done.recorded.startswith("failed") and "protocol is not checked" in done.notes[0]


@pytest.mark.anyio
async def test_the_order_in_which_tools_were_done_is_kept(tmp_path: Path) -> None:
    swapped = said("", ("c1", "wait", {}), ("c2", "quick", {}))
    file = await traced(tmp_path, [swapped, "done"], {})
    assert [line["name"] for line in read(file).runs[0].of("tool")] == ["quick", "wait"]
    await equal(file)


@pytest.mark.anyio
async def test_a_preset_s_words_and_rules_are_replayed(tmp_path: Path) -> None:
    script = [said("", ("c1", "nothing", {})), "done"]
    file = await traced(tmp_path, script, {"make": PiAgent})
    (result,) = read(file).runs[0].of("tool")
    assert result["content"] == "Tool nothing not found"
    await equal(file)


@pytest.mark.anyio
async def test_runs_of_one_thread_go_on_from_one_another(tmp_path: Path) -> None:
    file = await traced(tmp_path, [CALL, "one", "two", CALL, "three"], {}, "a", "b", "c")
    await equal(file, 3)
    first, second, third = (run.lines[0] for run in read(file).runs)
    assert first["history"] == []
    assert (second["after"], third["after"]) == (first["run"], second["run"])
    (last,) = await areplay(file, third["run"][:8])
    assert last.run == third["run"] and last.equal


@pytest.mark.anyio
async def test_a_thread_that_was_begun_before_the_trace_brings_its_history(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    async with Agent(ScriptedProvider(CALL, "one"), TOOLS, database=database, thread="t") as agent:
        await agent.prompt("before")
    file = await traced(tmp_path, [CALL, "two"], {"database": database})
    assert len(read(file).runs[0].lines[0]["history"]) == 4
    await equal(file)


@pytest.mark.anyio
async def test_queued_messages_arrive_where_they_did(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    async with Agent(ScriptedProvider(CALL, "one", "two"), TOOLS, trace=file) as agent:

        def steer(event: Any) -> None:
            if event.type == "tool_execution_end":
                agent.steer("look closer")
                agent.follow_up("and then?")

        agent.subscribe(steer)
        assert (await agent.prompt("hi")).turns == 3
        agent.steer("one more thing")
    async with Agent(ScriptedProvider("x"), TOOLS, trace=file, thread="u") as other:
        other.steer("waits already")
        await other.prompt("hi")
    await equal(file, 2)


@pytest.mark.anyio
async def test_a_continuation_takes_its_prompt_from_the_queue(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    async with Agent(ScriptedProvider("one", "two", "three"), TOOLS, trace=file) as agent:
        await agent.prompt("hi")
        agent.follow_up("go on")
        await agent.continue_()
        await agent.prompt([HumanMessage("look"), CALL, ToolMessage("x", tool_call_id="c1")])
    await equal(file, 3)


@pytest.mark.anyio
async def test_a_compaction_and_an_overflow_are_replayed(tmp_path: Path) -> None:
    script = [CALL, CALL, ContextOverflowError("too long"), "a summary", "done"]
    parts = {"settings": Settings(compaction_tail=1, context_window=1_000_000)}
    file = await traced(tmp_path, script, parts)
    run = read(file).runs[0]
    assert [line["purpose"] for line in run.of("model")][-2:] == ["summary", "answer"]
    assert run.of("compaction")
    await equal(file)


@pytest.mark.anyio
async def test_the_window_of_the_model_leads_to_the_same_compaction(tmp_path: Path) -> None:
    provider = ScriptedProvider(CALL, CALL, "a summary", "done", window=30)
    file = await traced(tmp_path, [provider], {"settings": Settings(compaction_tail=1)})
    assert read(file).runs[0].of("compaction")
    await equal(file)


@pytest.mark.anyio
@pytest.mark.parametrize("asking", ["hook", "body"])
async def test_a_run_that_waits_for_a_person_is_replayed_up_to_there(
    asking: str, tmp_path: Path
) -> None:
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("sure?")) if asking == "body" else "asked"

    def hook(context: Any) -> Ask | None:
        return Ask(reason="careful") if context.call.name == "ask" else None

    file = tmp_path / "runs.jsonl"
    hooks = Hooks(before_tool_call=hook if asking == "hook" else None)
    script: list[Any] = [said("", ("c1", "look", {}), ("c2", "ask", {})), "done", "again"]
    async with Agent(ScriptedProvider(*script), [*TOOLS, ask], trace=file, hooks=hooks) as agent:
        assert (await agent.prompt("hi")).status == "interrupted"
        answer = "yes" if asking == "body" else {"c2": "approve"}
        assert (await agent.resume(answer)).status == "completed"
        await agent.prompt("once more")
    first, second, third = await areplay(file)
    assert first.equal and first.recorded == first.now == "interrupted (interrupt)", first
    assert second.equal is None and "carries on an interrupted" in str(second.skipped)
    assert third.equal


@pytest.mark.anyio
@pytest.mark.parametrize("during", ["model", "tool", "pair"])
async def test_a_cancelled_run_is_cancelled_at_the_same_place(during: str, tmp_path: Path) -> None:
    file, gate = tmp_path / "runs.jsonl", Gate()

    async def hold(arguments: Any, context: ToolContext) -> ToolResult:
        gate._reached.abort()
        await context.signal.wait()
        return ToolResult(content="interrupted by the signal", is_error=True)

    held = tool("hold", hold, execution_mode="sequential" if during == "tool" else None)
    calls = said("", ("c1", "hold", {}), ("c2", "look", {}), ("c3", "hold", {}))
    script: list[Any] = [calls, said("", stop="aborted")]
    if during == "model":
        script = [CALL, [gate, *steps(said("", stop="aborted"))]]
    async with Agent(ScriptedProvider(*script), [*TOOLS, held], trace=file) as agent:
        run = agent.prompt("hi")
        await gate.reached()
        agent.abort(reason="enough")
        gate.open()
        assert (await run).status == "cancelled"
    (line,) = read(file).runs[0].of("abort")
    assert line["reason"] == "enough"
    await equal(file)


def has_runs(file: Path) -> bool:
    """A run that was refused leaves nothing."""
    return file.exists()


@pytest.mark.anyio
async def test_what_a_tool_sent_along_is_sent_again_beside_a_refused_call(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    world = World(Settings(limits=Limits(turns=1)), trace=file)
    world.agent.hooks = Hooks()
    for called in (["sends along", "unknown"], ["unknown", "sends along", "unknown"]):
        plan = Plan("prompt", [called], [], fails_at=None, hook=None, cancelled_at=None)
        await world.play(plan)
    await world.agent.aclose()
    assert [done.equal for done in await areplay(file)] == [True, True]


@pytest.mark.anyio
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=SETTINGS, plans=st.lists(PLANS, min_size=1, max_size=3))
async def test_random_runs_replay_to_themselves(chosen: Settings, plans: list[Plan]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "runs.jsonl")
        world = World(chosen, trace=file)
        world.agent.hooks = Hooks()  # so that requests are compared too
        for plan in plans:
            await world.play(Plan(**{**vars(plan), "fails_at": None}))
        await world.agent.aclose()
        for done in await areplay(file) if has_runs(file) else ():
            assert done.skipped or done.equal, done
            assert done.skipped or done.now == done.recorded or "cut_off" in done.recorded, done
