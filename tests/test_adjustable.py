"""What may be changed on an agent counts from its next run on; a run keeps what it began with."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from loopwright import Agent, ConfigurationError, Hooks, Settings
from loopwright.events import AnyEvent
from loopwright.settings import Limits
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.graphs import outline

pytestmark = pytest.mark.anyio


def look() -> str:
    """Look."""
    return "seen"


def listen() -> str:
    """Listen."""
    return "heard"


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def first(gate: Gate) -> ScriptedModel:
    """A model whose first run calls a tool, waiting at the gate."""
    call = Response(calls=[("c1", "look", {}), ("c2", "listen", {})], wait_for=gate)
    return ScriptedModel([call, "done", "done again"])


@pytest.fixture
async def agent(first: ScriptedModel) -> AsyncIterator[Agent]:
    async with Agent(first, [look, listen], "Be kind.") as made:
        yield made


async def test_a_run_keeps_its_settings_and_the_next_takes_the_new_ones(
    agent: Agent, first: ScriptedModel, gate: Gate
) -> None:
    second = ScriptedModel(["second"])  # under the name of the first
    run = agent.prompt("hi")
    await gate.reached()
    agent.model = second
    agent.system_prompt = "Be strict."
    agent.tools = [listen]
    agent.tool_execution = "sequential"
    agent.hooks = Hooks(should_stop_after_turn=lambda turn: True)
    gate.open()
    assert (await run).status == "completed"
    assert outline(agent.messages())[2:4] == ["c1: seen", "c2: heard"]
    assert [r.messages[0].content for r in first.requests] == ["Be kind."] * 2
    assert first.requests[1].tool_names == ["listen", "look"]
    assert (await agent.prompt("again")).status == "stopped"
    (request,) = second.requests
    assert (request.messages[0].content, request.tool_names) == ("Be strict.", ["listen"])


async def test_what_was_assigned_is_what_is_read(agent: Agent) -> None:
    assert [tool.name for tool in agent.tools] == ["look", "listen"]
    agent.tools = ["listen"]
    assert [tool.name for tool in agent.tools] == ["listen"]
    agent.tools = ["look", "listen"]
    assert [tool.name for tool in agent.tools] == ["look", "listen"]
    agent.thinking_level = "high"
    agent.tool_execution = "sequential"
    agent.system_prompt = None
    assert (agent.thinking_level, agent.tool_execution) == ("high", "sequential")
    assert (agent.system_prompt, agent.settings.thinking_level) == (None, "high")
    hooks = Hooks(get_api_key=lambda provider: None)
    agent.hooks = hooks
    assert agent.hooks is hooks
    agent.settings = Settings(model=agent.model, limits=Limits(turns=3))
    assert (agent.thinking_level, agent.settings.limits.turns) == ("off", 3)


async def test_a_model_is_assigned_by_name_or_as_an_object(agent: Agent) -> None:
    agent.model = "offline"
    assert agent.model == "offline"
    assert (await agent.prompt("hello")).status == "completed"
    agent.model = ScriptedModel(["from an object"], model_name="mine")
    assert agent.model == "mine"
    assert (await agent.prompt("hello")).final_text == "from an object"


async def test_what_cannot_be_is_refused_where_it_is_assigned_or_when_a_run_begins(
    agent: Agent,
) -> None:
    with pytest.raises(ConfigurationError, match="tool_execution is 'sideways'"):
        agent.tool_execution = "sideways"  # type: ignore[assignment]
    assert agent.tool_execution == "parallel"
    agent.model = "nonsense"
    with pytest.raises(ConfigurationError, match="unknown model 'nonsense'"):
        await agent.prompt("hi")


async def test_an_unknown_tool_name_is_refused_and_nothing_changes(agent: Agent) -> None:
    with pytest.raises(ConfigurationError):
        agent.tools = ["nowhere"]
    assert [tool.name for tool in agent.tools] == ["look", "listen"]


async def test_the_mode_of_a_queue_counts_from_the_next_poll_on(agent: Agent, gate: Gate) -> None:
    def widen(event: AnyEvent) -> None:
        if event.type == "queue_update":
            agent.steering_mode = "all"

    assert (agent.steering_mode, agent.follow_up_mode) == ("one_at_a_time", "one_at_a_time")
    agent.subscribe(widen)
    agent.steer(["one", "two", "three"])
    gate.open()
    await agent.prompt("hi")
    told: list[Any] = [line for line in outline(agent.messages()) if line.startswith("user")]
    assert told == ["user: hi", "user: one", "user: two", "user: three"]
    assert outline(agent.messages())[5:7] == ["user: two", "user: three"]
    agent.follow_up_mode = "all"
    assert agent.follow_up_mode == "all"


async def test_modes_are_what_the_settings_said_when_the_agent_was_made() -> None:
    settings = Settings(steering_mode="all", follow_up_mode="all")
    async with Agent(ScriptedModel(["one", "two"]), settings=settings) as agent:
        assert (agent.steering_mode, agent.follow_up_mode) == ("all", "all")
        agent.steer(["a", "b"])
        agent.follow_up(["c", "d"])
        await agent.prompt("hi")
        assert outline(agent.messages()) == [
            *("user: hi", "user: a", "user: b", "assistant: one"),
            *("user: c", "user: d", "assistant: two"),
        ]
