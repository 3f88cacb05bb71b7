"""The scripted model plays its script wherever langchain takes a chat model."""

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from loopwright.state.messages import Call
from loopwright.testing import Gate, Response, ScriptedModel, ScriptExhausted, VirtualClock

CALLS: list[Call | tuple[str, str, Any]] = [
    ("c1", "look", {"at": "sky"}),
    Call("c2", "look", {"at": "sea"}),
]
FULL = Response(text="Two words.", calls=CALLS, usage={"input_tokens": 5, "output_tokens": 2})


@tool
def look(at: str) -> str:
    """Say what is seen there."""
    return f"nothing at {at}"


def whole(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    first, *rest = chunks
    for chunk in rest:
        first = first + chunk
    return first


def check(message: BaseMessage) -> None:
    assert isinstance(message, AIMessage)
    assert message.content == "Two words."
    assert [(c["id"], c["args"]) for c in message.tool_calls] == [
        ("c1", {"at": "sky"}),
        ("c2", {"at": "sea"}),
    ]
    assert message.response_metadata["finish_reason"] == "tool_calls"
    usage: Any = message.usage_metadata
    assert usage["total_tokens"] == 7


def test_a_response_is_the_same_streamed_and_whole_sync_and_async() -> None:
    model = ScriptedModel([FULL] * 4)

    async def asynchronously() -> tuple[AIMessage, list[AIMessageChunk]]:
        return await model.ainvoke("hi"), [chunk async for chunk in model.astream("hi")]

    told, chunks = asyncio.run(asynchronously())
    check(told)
    check(whole(chunks))
    check(model.invoke("hi"))
    check(whole(list(model.stream("hi"))))


def test_text_is_streamed_word_by_word_and_a_list_item_by_item() -> None:
    model = ScriptedModel(["one two", Response(text=["on", "e t", "wo"])])
    assert [chunk.text for chunk in model.stream("hi") if chunk.text] == ["one ", "two"]
    assert [chunk.text for chunk in model.stream("hi") if chunk.text] == ["on", "e t", "wo"]


def test_a_message_is_played_with_its_id_calls_and_finish_reason() -> None:
    message = AIMessage(
        content="Two words.",
        id="m1",
        tool_calls=[
            {"id": "c1", "name": "look", "args": {"at": "sky"}},
            {"id": "c2", "name": "look", "args": {"at": "sea"}},
        ],
        usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    )
    streamed = whole(list(ScriptedModel([message]).stream("hi")))
    check(streamed)
    assert streamed.id == "m1"
    cut = AIMessage(content="cut", response_metadata={"finish_reason": "length"})
    assert ScriptedModel([cut]).invoke("hi").response_metadata["finish_reason"] == "length"


def test_broken_arguments_stay_broken_in_a_whole_answer() -> None:
    response = Response(calls=[("c1", "look", '{"at": "sk')])
    message = ScriptedModel([response]).invoke("hi")
    assert message.tool_calls == []
    assert [c["args"] for c in message.invalid_tool_calls] == ['{"at": "sk']


def test_raw_chunks_are_sent_as_they_are() -> None:
    chunks = [AIMessageChunk(content="raw"), AIMessageChunk(content="er")]
    model = ScriptedModel([Response(chunks=chunks)])
    assert [chunk.text for chunk in model.stream("hi")][:2] == ["raw", "er"]


def test_no_finish_reason_can_be_scripted() -> None:
    (*_, last) = ScriptedModel([Response(text="cut", stop="")]).stream("hi")
    assert "finish_reason" not in last.response_metadata


def test_exceptions_come_at_the_start_or_after_some_pieces() -> None:
    model = ScriptedModel([OSError("down"), Response(text="a b c", raise_after=(2, OSError()))])
    with pytest.raises(OSError, match="down"):
        model.invoke("hi")
    seen: list[str] = []
    with pytest.raises(OSError):
        for chunk in model.stream("hi"):
            seen.append(chunk.text)
    assert seen == ["a ", "b "]
    assert len(model.requests) == 2


def test_a_callable_answers_from_the_request() -> None:
    def shout(messages: list[BaseMessage]) -> str:
        return messages[-1].text.upper()

    model = ScriptedModel(itertools.repeat(shout))
    assert [model.invoke(word).text for word in ("a", "b")] == ["A", "B"]


def test_a_used_up_script_says_so() -> None:
    model = ScriptedModel(["only one"])
    model.invoke("hi")
    with pytest.raises(ScriptExhausted, match="no answer for request 2"):
        model.invoke("hi")


def test_requests_are_recorded_with_messages_tools_and_options() -> None:
    model = ScriptedModel(["a", "b"])
    model.bind_tools([look], tool_choice="look").invoke([HumanMessage("first")])
    model.invoke("second")
    first, second = model.requests
    assert ([m.content for m in first.messages], first.tool_names) == (["first"], ["look"])
    assert first.tools[0]["function"]["parameters"]["required"] == ["at"]
    assert first.options == {"tool_choice": "look"}
    assert (second.tool_names, second.options) == ([], {})


def test_threads_and_event_loops_share_a_script_without_losing_an_answer() -> None:
    model = ScriptedModel([str(number) for number in range(200)])

    def ask(number: int) -> str:
        return model.invoke("hi").text if number % 2 else asyncio.run(model.ainvoke("hi")).text

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(ask, range(200)))
    assert sorted(map(int, said)) == list(range(200))
    assert len(model.requests) == 200


@pytest.mark.anyio
async def test_a_delay_waits_by_the_model_s_clock() -> None:
    clock = VirtualClock()
    model = ScriptedModel([Response(text="late", delay=60)], clock=clock)
    task = asyncio.create_task(model.ainvoke("hi"))
    await clock.sleepers(1)
    assert not task.done()
    clock.advance(60)
    assert (await task).text == "late"


@pytest.mark.anyio
@pytest.mark.parametrize(("after", "seen"), [(None, ["a ", "b"]), (1, ["a "]), (0, [])])
async def test_an_answer_stops_at_its_gate(after: int | None, seen: list[str]) -> None:
    gate = Gate()
    model = ScriptedModel([Response(text="a b", wait_for=gate, wait_after=after)])
    said: list[str] = []

    async def listen() -> None:
        async for chunk in model.astream("hi"):
            said.append(chunk.text)

    listening = asyncio.create_task(listen())
    await gate.reached()
    assert said == seen
    gate.open()
    await listening
    assert "".join(said) == "a b"


def test_a_sync_answer_stops_at_its_gate_too() -> None:
    gate = Gate()
    model = ScriptedModel([Response(text="a", wait_for=gate)])
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(model.invoke, "hi")
        assert gate.reached_blocking(30)
        assert not answer.done()
        gate.open()
        assert answer.result().text == "a"


def test_it_drives_a_stock_graph_with_tools() -> None:
    model = ScriptedModel([Response(calls=CALLS), "Nothing anywhere."])
    bound = model.bind_tools([look])

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("model", answer).add_node("tools", ToolNode([look]))
    graph.add_edge(START, "model").add_edge("tools", "model")
    graph.add_conditional_edges("model", tools_condition, ["tools", END])
    done = graph.compile().invoke({"messages": [HumanMessage("Look around.")]})
    said = [message.text for message in done["messages"]]
    assert said[2:] == ["nothing at sky", "nothing at sea", "Nothing anywhere."]
