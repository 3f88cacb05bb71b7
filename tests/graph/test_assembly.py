"""The graph as it is drawn: eight nodes, and only the ways that the edges name."""

from typing import Any, get_args, get_type_hints

import pytest
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from loopwright.graph import edges
from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.support.graphs import on, rig
from tests.support.providers import said

NODES = ["load", "queue_drain", "model", "tool_batch", "stop_hook", "compact", "finish", "fail"]


def test_the_nodes_are_the_steps_of_the_loop() -> None:
    graph = rig().graph
    assert isinstance(graph, AgentGraph)
    assert [name for name in graph.nodes if name != "__start__"] == NODES


def test_every_way_in_the_drawing_is_one_of_an_edge() -> None:
    drawn = {(edge.source, edge.target) for edge in rig().graph.get_graph().edges}
    expected = {("__start__", "load"), ("fail", "__end__")}
    for name in NODES[:-1]:
        targets = get_args(get_type_hints(getattr(edges, f"after_{name}"))["return"])
        expected |= {(name, target) for target in targets}
    assert drawn == expected


def test_a_drawing_asks_no_server() -> None:
    shown = rig().graph._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/markdown"}
    assert "queue_drain" in shown["text/markdown"]


@pytest.mark.anyio
async def test_a_turn_walks_the_nodes_in_the_order_of_the_loop() -> None:
    made = rig(said("", ("c1", "t", {})), "done")
    visited = [
        name
        async for update in made.graph.astream({"messages": "hi"}, on("t"), stream_mode="updates")
        for name in update
    ]
    turn = ["queue_drain", "model", "tool_batch", "stop_hook"]
    assert visited == [
        "load",
        *turn,
        "queue_drain",
        "model",
        "stop_hook",
        "queue_drain",
        "finish",
    ]


@pytest.mark.anyio
async def test_without_a_checkpointer_nothing_is_kept() -> None:
    made = rig("one", "two")
    graph = build(made.graph.dependencies)
    for _ in range(2):
        answer: dict[str, Any] = await graph.ainvoke({"messages": "hi"}, on("t"))
        messages: list[AnyMessage] = answer["messages"]
        assert len(messages) == 2


@pytest.mark.anyio
async def test_tools_reach_the_graph_s_store() -> None:
    async def remember(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        assert context.store is not None
        await context.store.aput(("notes",), "k", arguments)
        return ToolResult(content="noted")

    tool = Tool(
        name="remember", description="Note.", parameters={"type": "object"}, execute=remember
    )
    made, store = rig(said("", ("c1", "remember", {"a": 1})), "done", tools=[tool]), InMemoryStore()
    graph = build(made.graph.dependencies, checkpointer=InMemorySaver(), store=store)
    await graph.ainvoke({"messages": "hi"}, on("t"))
    found = store.get(("notes",), "k")
    assert found is not None and found.value == {"a": 1}
