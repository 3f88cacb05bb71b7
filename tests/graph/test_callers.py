"""Every way to call the graph: blocking, in a loop, in a chain, in another graph."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.support.graphs import Rig, on, outline, rig, told
from tests.support.providers import said

HI = {"messages": "hi"}


def look() -> str:
    """Look."""
    return "seen"


def test_blocking_calls_work_in_a_script() -> None:
    made = rig("one", "two", "three", "four")
    assert made.graph.invoke(HI, on("t"))["result"]["final_text"] == "one"
    events = list(made.graph.stream(HI, on("t"), stream_mode="custom"))
    assert told(events)[-1] == "agent_end"
    answers = made.graph.batch([HI, HI])
    assert {answer["result"]["final_text"] for answer in answers} == {"three", "four"}


@pytest.mark.anyio
async def test_blocking_calls_work_inside_a_running_loop() -> None:
    made = rig("one", "two", "three")
    assert made.graph.invoke(HI, on("t"))["result"]["final_text"] == "one"
    assert list(made.graph.stream(HI, on("t"), stream_mode="custom"))
    assert made.graph.batch([HI])[0]["result"]["final_text"] == "three"


def test_a_blocking_call_from_an_async_tool_is_refused_as_that_call_s_result() -> None:
    made: Rig

    async def nested() -> str:
        """Call the graph in a way that would wait for itself."""
        return str(made.graph.invoke(HI, on("other")))

    made = rig(said("", ("c1", "nested", {})), "done", tools=[nested])
    assert made.graph.invoke(HI, on("t"))["result"]["status"] == "completed"
    assert "use the async method" in made.provider.requests[-1].messages[-1].text


def test_blocking_calls_from_several_threads_at_once() -> None:
    made = rig(*["done"] * 8)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: made.graph.invoke(HI, on(f"t{n}")), range(8)))
    assert {answer["result"]["thread"] for answer in answers} == {f"t{n}" for n in range(8)}


def test_a_stream_that_is_left_early_gives_its_thread_back() -> None:
    made = rig(said("", ("c1", "look", {})), "done", "again", tools=[look])
    for _ in made.graph.stream(HI, on("t"), stream_mode="custom"):
        break
    made.provider.script[:] = ["again"]
    assert made.graph.invoke(HI, on("t"))["result"]["final_text"] == "again"


@pytest.mark.anyio
async def test_a_prompt_template_may_stand_before_the_graph() -> None:
    made = rig("hello", "hello")
    chain = ChatPromptTemplate.from_messages([("user", "say {word}")]) | made.graph
    answer = await chain.ainvoke({"word": "hello"}, on("t"))
    assert outline(answer["messages"]) == ["user: say hello", "assistant: hello"]
    assert chain.invoke({"word": "it"}, on("u"))["result"]["status"] == "completed"


@pytest.mark.anyio
async def test_the_graph_may_be_a_node_of_another_graph() -> None:
    class Parent(MessagesState):
        remaining: int

    made = rig(said("", ("c1", "look", {})), "from the node", tools=[look])
    builder = StateGraph(Parent)
    builder.add_node("agent", made.graph)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    parent = builder.compile(checkpointer=InMemorySaver())
    answer = await parent.ainvoke({"messages": [HumanMessage("hi")], "remaining": 3}, on("t"))
    assert outline(answer["messages"])[-2:] == ["c1: seen", "assistant: from the node"]
    assert answer["remaining"] == 3


@pytest.mark.anyio
async def test_a_listener_on_the_graph_s_callbacks_hears_our_events() -> None:
    made = rig("hello")
    names = [
        event["name"]
        async for event in made.graph.astream_events(HI, on("t"), version="v2")
        if event["event"] == "on_custom_event"
    ]
    assert (names[0], names[-1]) == ("agent_start", "agent_end")
