"""The agent's graph where a runnable is taken: called blocking, piped, batched, nested."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from loopwright import Agent
from loopwright.graph.entrance import AgentGraph
from tests.entrances import scripted
from tests.entrances.ways import prompt


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with scripted.agent(tmp_path / "threads.db") as opened:
        yield opened


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def final(output: Any) -> str:
    return str(output["result"]["final_text"])


def test_invoke_blocks_until_the_output_is_there(agent: Agent) -> None:
    assert final(agent.graph.invoke(prompt("my number is 7"), on("t"))) == "heard: my number is 7"
    assert final(agent.graph.invoke(prompt("which number?"), on("t"))) == "my number is 7"


@pytest.mark.anyio
async def test_invoke_works_inside_a_running_loop_too(agent: Agent) -> None:
    assert final(agent.graph.invoke(prompt("count to 2"), on("t"))) == "counted to 2"


def test_stream_blocks_for_each_event(agent: Agent) -> None:
    events = list(agent.graph.stream(prompt("count to 1"), on("t"), stream_mode="custom"))
    assert (events[0].type, events[-1].type) == ("agent_start", "agent_end")


def test_a_prompt_template_is_piped_into_it(agent: Agent) -> None:
    chain = ChatPromptTemplate.from_messages([("user", "count to {n}")]) | agent.graph
    assert final(chain.invoke({"n": 2}, on("t"))) == "counted to 2"
    assert [m.type for m in agent.messages("t")] == ["human", "ai", "tool", "ai", "tool", "ai"]


@pytest.mark.anyio
async def test_a_batch_gives_each_input_a_thread_of_its_own(agent: Agent) -> None:
    outputs = await agent.graph.abatch([prompt("count to 1"), prompt("count to 2")])
    assert [final(output) for output in outputs] == ["counted to 1", "counted to 2"]
    assert len({info.id for info in agent.threads()}) == 2


@pytest.mark.anyio
async def test_one_of_a_batch_may_fail_alone(agent: Agent) -> None:
    given: list[Any] = [prompt("count to 1"), {"messages": 5}]
    outputs = await agent.graph.abatch(given, return_exceptions=True)
    assert final(outputs[0]) == "counted to 1"
    assert str(outputs[1]).startswith("messages must be text")


class Outer(TypedDict):
    """The state of a graph that has the agent's graph as a node; two channels have its names."""

    messages: Annotated[list[AnyMessage], add_messages]
    result: dict[str, Any]
    seen: str


def outer(inner: AgentGraph) -> Any:
    async def look(state: Outer) -> dict[str, Any]:
        return {"seen": state["result"]["final_text"]}

    graph = StateGraph(Outer)
    graph.add_node("agent", inner)
    graph.add_node("look", look)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "look")
    graph.add_edge("look", END)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.anyio
async def test_it_is_a_node_of_another_graph() -> None:
    whole = outer(await scripted.make_graph())
    output = await whole.ainvoke(prompt("count to 1"), on("t"))
    assert output["seen"] == "counted to 1"
    output = await whole.ainvoke(prompt("my number is 7"), on("t"))
    output = await whole.ainvoke(prompt("which number?"), on("t"))
    assert output["seen"] == "my number is 7"
    assert [m.type for m in output["messages"]] == [
        "human",
        "ai",
        "tool",
        "ai",
        *["human", "ai"] * 2,
    ]
    nodes = whole.get_graph(xray=True).nodes
    assert {"agent:load", "agent:tool_batch", "look"} <= set(nodes)
