"""The preset `orkas`: a turn as a stream of plain events, and its result as the last of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loopwright import Limits, Settings
from loopwright.errors import ConfigurationError
from loopwright.events import AnyEvent
from loopwright.presets.orkas import (
    INTERNAL,
    MAX_STEPS,
    UNAVAILABLE,
    OrkasAgent,
    OrkasEvent,
    settings_of,
)
from loopwright.settings import Environment
from loopwright.testing import HttpReply, OpenAIServer, Response, ScriptedModel, VirtualClock
from loopwright.testing.http import Drop
from loopwright.testing.server import SseReply
from loopwright.tools.functions import function_tool


def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


def asks(*calls: tuple[str, str, Any]) -> Response:
    return Response(calls=calls)


async def events(agent: OrkasAgent, message: str) -> list[OrkasEvent]:
    return [event async for event in agent.turn(message)]


@pytest.mark.anyio
async def test_a_turn_streams_text_and_tools_and_ends_with_its_result() -> None:
    model = ScriptedModel(
        [asks(("c1", "look", {"place": "here"})), Response(text=["All ", "done"])]
    )
    async with OrkasAgent(model, [look]) as agent:
        told = await events(agent, "go")
    assert [event["type"] for event in told] == [
        "tool_start",
        "tool_end",
        "text_delta",
        "text_delta",
        "done",
    ]
    assert told[0] == {"type": "tool_start", "id": "c1", "name": "look", "input": {"place": "here"}}
    assert told[1] == {"type": "tool_end", "id": "c1", "name": "look", "result": "nothing in here"}
    assert told[-1]["type"] == "done"
    result = told[-1]["result"]
    assert (result["text"], result["status"], result["code"]) == ("All done", "completed", None)
    assert result["steps"] == 2
    assert result["toolFailures"] == {"transient": 0, "permanent": 0}


def test_the_blocking_call_gives_the_last_result(tmp_path: Path) -> None:
    def agent(name: str) -> OrkasAgent:
        model = ScriptedModel([asks(("c1", "look", {"place": "here"})), "done"])
        return OrkasAgent(model, [look], database=tmp_path / name)

    with agent("a") as one, agent("b") as other:
        blocking = one.ask("go")
        streamed = asyncio.run(events(other, "go"))[-1]
        assert streamed["type"] == "done"
        for key in ("text", "status", "code", "steps", "toolFailures"):
            assert blocking[key] == streamed["result"][key]
        kinds = [message.type for message in blocking["messages"]]
        assert kinds == [message.type for message in streamed["result"]["messages"]]


@pytest.mark.anyio
async def test_a_retry_is_told_and_voids_the_text_before_it() -> None:
    half = SseReply(
        events=[{"choices": [{"index": 0, "delta": {"content": "Half "}}]}, Drop()], done=False
    )
    async with OpenAIServer([half, HttpReply(status=429), "Whole."]) as server:
        clock, settings = VirtualClock(auto=True), Settings(stall_timeout=None)
        environment = Environment(base_url=server.base_url)
        async with OrkasAgent(
            "custom/m", environment=environment, clock=clock, settings=settings
        ) as agent:
            told = await events(agent, "go")
    kinds = [event["type"] for event in told]
    assert kinds == ["text_delta", "retry", "retry", "text_delta", "done"]
    retries = [event for event in told if event["type"] == "retry"]
    assert [event["attempt"] for event in retries] == [1, 2]
    assert told[-1]["type"] == "done" and told[-1]["result"]["text"] == "Whole."


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "code"), [(401, "AUTH"), (402, "BILLING"), (400, "BAD_REQUEST"), (500, UNAVAILABLE)]
)
async def test_a_failed_turn_has_a_code(status: int, code: str) -> None:
    async with OpenAIServer([HttpReply(status=status)]) as server:
        environment = Environment(base_url=server.base_url)
        settings = Settings(retries=0)
        async with OrkasAgent("custom/m", environment=environment, settings=settings) as agent:
            told = await events(agent, "go")
    assert told[-1]["type"] == "done"
    assert (told[-1]["result"]["status"], told[-1]["result"]["code"]) == ("failed", code)


@pytest.mark.anyio
async def test_a_fault_of_a_listener_is_internal_and_a_limit_has_its_own_code() -> None:
    def fail(event: AnyEvent) -> None:
        if event.type == "turn_start":
            raise RuntimeError("mine")

    async with OrkasAgent(ScriptedModel(["hi"])) as agent:
        agent.subscribe(fail)
        told = await events(agent, "go")
        assert told[-1]["type"] == "done" and told[-1]["result"]["code"] == INTERNAL
    model = ScriptedModel(asks((f"c{n}", "look", {"place": str(n)})) for n in range(9))
    async with OrkasAgent(model, [look], max_steps=2) as agent:
        told = await events(agent, "go")
        assert told[-1]["type"] == "done" and told[-1]["result"]["code"] == "MAX_TURNS"


@pytest.mark.anyio
async def test_failures_of_tools_go_to_the_model_and_are_counted() -> None:
    def fetch(n: int) -> str:
        """Fetch something."""
        raise (ConnectionResetError if n == 1 else ValueError)("no")

    calls = [("a", "fetch", {"n": 1}), ("b", "fetch", {"n": 2}), ("c", "unknown", {})]
    model = ScriptedModel([*(asks(call) for call in calls), "I give up."])
    async with OrkasAgent(model, [fetch]) as agent:
        told = await events(agent, "go")
    assert told[-1]["type"] == "done"
    result = told[-1]["result"]
    assert (result["status"], result["toolFailures"]) == (
        "completed",
        {"transient": 1, "permanent": 2},
    )
    assert [event["result"][:2] for event in told if event["type"] == "tool_end"][:2] == ["no"] * 2


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "most"), [(None, 1), ("parallel", 2)])
async def test_tools_run_one_by_one_unless_all_of_a_batch_may_run_together(
    mode: Any, most: int
) -> None:
    running, seen = set[str](), list[int]()

    async def work(name: str) -> str:
        """Work."""
        running.add(name)
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append(len(running))
        running.discard(name)
        return name

    model = ScriptedModel([asks(("a", "work", {"name": "a"}), ("b", "work", {"name": "b"})), "ok"])
    async with OrkasAgent(model, [function_tool(work, execution_mode=mode)]) as agent:
        await events(agent, "go")
    assert max(seen) == most


@pytest.mark.anyio
async def test_a_cancelled_turn_answers_its_open_calls_and_ends_with_done() -> None:
    async def wait() -> str:
        """Wait."""
        agent.abort()
        return "late"

    model = ScriptedModel([asks(("a", "wait", {}), ("b", "wait", {}))])
    async with OrkasAgent(model, [wait]) as agent:
        told = await events(agent, "go")
        results = [message for message in agent.messages() if message.type == "tool"]
    assert told[-1]["type"] == "done"
    assert (told[-1]["result"]["status"], told[-1]["result"]["code"]) == ("cancelled", None)
    assert len(results) == 2


def test_the_pins() -> None:
    settings = settings_of(Settings(limits=Limits(tokens=5)), MAX_STEPS)
    assert (settings.limits.turns, settings.limits.tokens) == (100, 5)
    assert (settings.foreign_thinking, settings.cancel_policy) == ("text", "record")
    assert (settings.retries, settings.repetition) == (3, "graded")


@pytest.mark.anyio
async def test_what_keeps_a_turn_from_beginning_is_raised() -> None:
    async with OrkasAgent("custom/m") as agent:
        with pytest.raises(ConfigurationError):
            await events(agent, "go")
