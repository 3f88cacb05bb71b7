"""Any langchain chat model as a provider; what a server may do to it goes over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

from loopwright.errors import ConfigurationError, ContextOverflowError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import StreamEnd, StreamPiece, StreamStart
from loopwright.providers.registry import Registry
from loopwright.settings import Environment
from loopwright.signals import AbortSignal
from loopwright.state.messages import calls, error_of, stop_reason
from loopwright.testing import (
    Drop,
    Gate,
    HttpReply,
    OpenAIServer,
    RawReply,
    Response,
    ScriptedModel,
    SseReply,
)
from tests.providers.asking import KEY, ask, ask_server, client, request, tools

pytestmark = pytest.mark.anyio

CUT = '{"path": "notes.txt", "content": "first li'


def event(delta: dict[str, Any], stop: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice], **fields}


async def test_an_answer_is_streamed_and_comes_complete_at_the_end() -> None:
    told = await ask_server(
        Response(text="It is fine.", usage={"input_tokens": 1, "output_tokens": 3})
    )
    assert told.pieces == [
        ("text_start", 0, ""),
        ("text_delta", 0, "It "),
        ("text_delta", 0, "is "),
        ("text_delta", 0, "fine."),
        ("text_end", 0, ""),
    ]
    assert told.message.content == "It is fine."
    assert told.events[0] == StreamStart(message_id=told.message.id)
    assert told.message.response_metadata == {
        "stop_reason": "stop",
        "model": "test-model",
        "provider": "test",
        "api": "openai-completions",
        "finish_reason": "stop",
    }


async def test_a_request_carries_prompt_messages_and_tools_in_a_stable_order() -> None:
    async with OpenAIServer(["a", "b"]) as server:
        provider = client(server)
        await ask(provider, HumanMessage("hello"), system_prompt="Be brief.", tools=tools("b", "a"))
        await ask(provider, HumanMessage("hello"))
    first, second = (sent.body for sent in server.requests)
    assert [m["content"] for m in first["messages"]] == ["Be brief.", "hello"]
    assert first["tools"][0] == {
        "type": "function",
        "function": {
            "name": "a",
            "description": "does a",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    assert [tool["function"]["name"] for tool in first["tools"]] == ["a", "b"]
    assert "tools" not in second


async def test_calls_that_come_in_pieces_are_whole_at_the_end() -> None:
    wanted = [("c1", "read", {"path": "a.txt"}), ("c2", "read", {"path": "b.txt"})]
    told = await ask_server(Response(text="I look.", calls=wanted))
    assert [(c["id"], c["name"], c["args"]) for c in told.message.tool_calls] == wanted
    assert stop_reason(told.message) == "tool_use"
    assert told.message.content == "I look."
    deltas = [piece for piece in told.pieces if piece[0] == "tool_call_delta"]
    assert len(deltas) > 2
    assert json.loads("".join(delta for _, index, delta in deltas if index == 2)) == wanted[1][2]


@pytest.mark.parametrize(
    ("stop", "reason"), [("length", "length"), ("tool_calls", "tool_use"), ("stop", "tool_use")]
)
async def test_a_call_whose_arguments_were_cut_is_refused(stop: str, reason: str) -> None:
    told = await ask_server(Response(calls=[("c1", "write", CUT)], stop=stop))
    assert told.message.tool_calls == []
    (broken,) = calls(told.message)
    assert (broken.id, broken.name, broken.arguments) == ("c1", "write", CUT)
    assert "cut off" in str(broken.error)
    assert stop_reason(told.message) == reason


async def test_every_call_of_an_answer_cut_by_its_length_is_refused() -> None:
    whole, cut = ("c1", "read", {"path": "a"}), ("c2", "write", CUT)
    told = await ask_server(Response(calls=[whole, cut], stop="length"))
    assert [(c.id, bool(c.error)) for c in calls(told.message)] == [("c1", True), ("c2", True)]


async def test_a_filtered_answer_keeps_the_server_s_word() -> None:
    told = await ask_server(Response(stop="content_filter"))
    assert stop_reason(told.message) == "content_filter"
    assert error_of(told.message) is None


@pytest.mark.parametrize("wanted", [[], [("c1", "read", {"path": "a"})]])
async def test_a_stream_without_a_finish_reason_was_cut(wanted: list[Any]) -> None:
    told = await ask_server(Response(text="Let me look:", calls=wanted, stop=""))
    assert told.message.content == "Let me look:"
    assert calls(told.message) == []
    error = error_of(told.message) or {}
    assert error["kind"] == "protocol"
    assert "without a finish reason" in error["message"]
    assert ("1 tool call(s) were not run" in error["message"]) == bool(wanted)


@pytest.mark.parametrize("reset", [True, False])
async def test_a_connection_that_breaks_mid_stream_is_an_error_and_no_call_runs(
    reset: bool,
) -> None:
    head = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    told = await ask_server(
        SseReply(events=[event({"content": "so far"}), event({"tool_calls": [head]}), Drop(reset)])
    )
    assert (told.message.content, calls(told.message)) == ("so far", [])
    assert (error_of(told.message) or {})["kind"] == "network"


async def test_a_connection_that_breaks_behind_the_finish_reason_takes_nothing_away() -> None:
    told = await ask_server(SseReply(events=[event({"content": "all"}), event({}, "stop"), Drop()]))
    assert (told.message.content, stop_reason(told.message)) == ("all", "stop")


async def test_a_provider_that_breaks_off_by_its_finish_reason_is_an_error() -> None:
    told = await ask_server(Response(text="so far", stop="error"))
    assert (error_of(told.message) or {})["kind"] == "server_error"
    assert told.message.content == "so far"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpReply(status=401, body={"error": {"message": f"wrong key {KEY}"}}), "auth"),
        (HttpReply(status=429, headers={"retry-after": "9"}), "rate_limit"),
        (HttpReply(status=500, body="<html>oops</html>"), "server_error"),
        (HttpReply(status=504), "timeout"),
        (HttpReply(status=400, body={"error": {"message": "bad"}}), "bad_request"),
        (
            SseReply(events=[{"error": {"message": "busy", "type": "overloaded_error"}}]),
            "overloaded",
        ),
        (SseReply(done=False), "protocol"),
        (RawReply(writes=[b'data: {"choices":[{"del     \n\n']), "protocol"),
        (RawReply(writes=[b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n']), "protocol"),
    ],
)
async def test_a_server_s_failure_is_an_answer_that_says_its_kind(reply: Any, kind: str) -> None:
    told = await ask_server(reply)
    assert stop_reason(told.message) == "error"
    error = error_of(told.message) or {}
    assert error["kind"] == kind
    assert error["message"]
    assert KEY not in str(told.message)


async def test_a_server_that_is_not_there_is_a_connection_error() -> None:
    async with OpenAIServer() as server:
        provider = client(server)
    error = error_of((await ask(provider)).message) or {}
    assert error["kind"] == "network"
    assert "connect" in error["message"].lower()


async def test_a_silent_server_is_a_timeout() -> None:
    async with OpenAIServer([Response(text="late", wait_for=Gate(), wait_after=0)]) as server:
        told = await ask(client(server, timeout=0.05))
    assert (error_of(told.message) or {})["kind"] == "timeout"


async def test_a_request_that_does_not_fit_raises() -> None:
    body = {"error": {"message": f"too long, {KEY}", "code": "context_length_exceeded"}}
    with pytest.raises(ContextOverflowError, match=r"too long, \*\*\*"):
        await ask_server(HttpReply(status=400, body=body))


@pytest.mark.parametrize("totals", [[(100, 3)], [(100, 1), (100, 2), (100, 3)]])
async def test_usage_is_the_last_total_and_not_a_sum(totals: list[tuple[int, int]]) -> None:
    reports = [
        {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
        for read, wrote in totals
    ]
    events = [event({"content": "a"}, usage=report) for report in reports]
    told = await ask_server(SseReply(events=[*events, event({}, "stop")]))
    usage: Any = told.message.usage_metadata
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (100, 3, 103)


async def test_an_abort_ends_the_stream_keeps_the_text_and_leaves_the_server() -> None:
    gate, signal = Gate(), AbortSignal()
    reply = Response(text="so far", calls=[("c1", "f", "{}")], wait_for=gate, wait_after=5)
    async with OpenAIServer([reply]) as server:
        events = []
        async for told in client(server).stream(request(signal=signal)):
            events.append(told)
            if isinstance(told, StreamPiece) and told.kind == "tool_call_delta":
                signal.abort()
        await server.requests[0].gone.wait()
    end = events[-1]
    assert isinstance(end, StreamEnd)
    assert (end.message.content, calls(end.message)) == ("so far", [])
    assert stop_reason(end.message) == "aborted"
    assert end.message.response_metadata["error_message"] == "Request was aborted"


async def test_an_abort_while_nothing_has_come_yet_ends_the_wait() -> None:
    gate, signal = Gate(), AbortSignal()
    async with OpenAIServer([Response(text="late", wait_for=gate, wait_after=0)]) as server:

        async def abort_when_reached() -> None:
            await gate.reached()
            signal.abort()

        told, _ = await asyncio.gather(ask(client(server), signal=signal), abort_when_reached())
    assert stop_reason(told.message) == "aborted"
    assert told.message.content == ""


async def test_an_abort_before_the_request_sends_nothing() -> None:
    signal, model = AbortSignal(), ScriptedModel(["never"])
    signal.abort()
    told = await ask(ChatModelProvider(model), signal=signal)
    assert stop_reason(told.message) == "aborted"
    assert len(told.events) == 1
    assert model.requests == []


async def test_a_consumer_that_leaves_early_leaves_the_server() -> None:
    async with OpenAIServer([Response(text="a b", wait_for=Gate(), wait_after=2)]) as server:
        stream: Any = client(server).stream(request())
        assert isinstance(await anext(stream), StreamStart)
        await stream.aclose()
        await server.requests[0].gone.wait()


async def test_a_cancelled_task_is_cancelled_and_the_model_is_left() -> None:
    gate = Gate()
    async with OpenAIServer([Response(text="a", wait_for=gate)]) as server:
        task = asyncio.ensure_future(ask(client(server)))
        await gate.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.requests[0].gone.wait()


async def test_thinking_is_streamed_and_stored_apart_from_the_text() -> None:
    told = await ask(ChatModelProvider(ScriptedModel([Response(thinking="hm", text="yes")])))
    assert told.pieces[:4] == [
        ("thinking_start", 0, ""),
        ("thinking_delta", 0, "hm"),
        ("thinking_end", 0, ""),
        ("text_start", 1, ""),
    ]
    assert told.message.content == [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "yes"},
    ]


async def test_a_model_that_cannot_stream_answers_in_one_piece() -> None:
    wanted = tool_call(id="c1", name="f", args={"n": 1})
    model = FakeMessagesListChatModel(responses=[AIMessage("whole", tool_calls=[wanted])])
    told = await ask(ChatModelProvider(model))
    assert told.message.content == "whole"
    assert told.message.tool_calls == [wanted]
    assert stop_reason(told.message) == "tool_use"


async def test_a_model_whose_last_chunk_says_so_needs_no_finish_reason() -> None:
    told = await ask(ChatModelProvider(GenericFakeChatModel(messages=iter(["well then"]))))
    assert (told.message.content, stop_reason(told.message)) == ("well then", "stop")


async def test_a_mistake_in_a_model_s_program_is_a_failed_answer_that_calls_it_a_bug() -> None:
    told = await ask(ChatModelProvider(ScriptedModel([])))
    text = "ScriptExhausted: the script has no answer for request 1"
    assert error_of(told.message) == {"kind": "bug", "message": text}


async def test_a_model_that_cancels_its_own_request_is_an_error() -> None:
    class Cancelling(ScriptedModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            raise asyncio.CancelledError
            yield

    make: Any = Cancelling
    told = await ask(ChatModelProvider(make()))
    assert (error_of(told.message) or {})["kind"] == "network"


async def test_an_error_mid_stream_keeps_what_came_before() -> None:
    response = Response(text="one two three", raise_after=(2, ConnectionResetError("gone")))
    told = await ask(ChatModelProvider(ScriptedModel([response])))
    assert told.message.content == "one two "
    assert error_of(told.message) == {"kind": "network", "message": "gone"}


class Counting(ScriptedModel):
    """Counts how often tools were bound."""

    bound: list[list[str]] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.bound.append([tool["function"]["name"] for tool in tools])
        return super().bind_tools(tools, **kwargs)


async def test_tools_are_bound_once_for_each_set_whatever_their_order() -> None:
    make: Any = Counting
    model = make(["1", "2", "3", "4"])
    provider, (a, b) = ChatModelProvider(model), tools("a", "b")
    for offered in ([b, a], [a, b], [a], []):
        await ask(provider, tools=offered)
    assert model.bound == [["a", "b"], ["a"]]
    assert [sent.tool_names for sent in model.requests] == [["a", "b"], ["a", "b"], ["a"], []]


async def test_tools_for_a_model_that_cannot_call_any_are_refused_clearly() -> None:
    model = FakeMessagesListChatModel(responses=[AIMessage("x")])
    with pytest.raises(ConfigurationError, match="cannot call tools"):
        await ask(ChatModelProvider(model), tools=tools("a"))


async def test_a_key_for_a_model_that_has_its_own_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="its own key"):
        await ask(ChatModelProvider(ScriptedModel(["x"])), api_key="another")


class Factory:
    """Makes scripted models and says which keys it was asked for."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.closed: list[BaseChatModel] = []

    def make(self, key: str) -> BaseChatModel:
        self.keys.append(key)
        return ScriptedModel([f"as {key}"] * 4)

    async def close(self, model: BaseChatModel) -> None:
        self.closed.append(model)

    async def check(self, model: BaseChatModel) -> None:
        self.keys.append("checked")

    def secrets(self) -> list[str]:
        return []


async def test_a_request_with_a_key_is_asked_with_that_key() -> None:
    factory = Factory()
    provider = ChatModelProvider(factory.make(""), factory=factory)
    said = [(await ask(provider, api_key=key)).message.content for key in ("k1", "k2", None, "k1")]
    assert said == ["as k1", "as k2", "as ", "as k1"]
    assert factory.keys == ["", "k1", "k2"]
    await provider.aclose()
    assert len(factory.closed) == 3


def test_each_event_loop_gets_a_model_of_its_own() -> None:
    factory = Factory()
    provider = ChatModelProvider(factory.make(""), factory=factory)
    for _ in range(3):
        asyncio.run(ask(provider))
    assert factory.keys == ["", "", ""]


def test_a_kept_connection_of_one_event_loop_does_not_break_the_next() -> None:
    async def twice() -> list[str]:
        told = [await ask(provider), await ask(provider)]
        await provider.aclose()
        return [stop_reason(one.message) for one in told]

    with OpenAIServer(["x"] * 4, keep_alive=True) as server:
        found = Registry(environment=Environment(base_url=server.base_url), variables={})(
            "custom/m"
        )
        assert isinstance(found, ChatModelProvider)
        provider = found
        assert asyncio.run(twice()) + asyncio.run(twice()) == ["stop"] * 4
        assert server.connections == 2


async def test_a_thinking_level_adds_what_the_provider_maps_it_to() -> None:
    model = ScriptedModel(["a", "b"])
    provider = ChatModelProvider(model, thinking={"high": {"reasoning_effort": "high"}})
    await ask(provider, thinking_level="high")
    await ask(provider, thinking_level="off")
    assert [sent.options for sent in model.requests] == [{"reasoning_effort": "high"}, {}]


def test_names_default_to_the_model_s_own_and_the_window_to_what_is_known_of_it() -> None:
    provider = ChatModelProvider(ScriptedModel())
    assert (provider.id, provider.name) == ("ScriptedModel", "scripted")
    assert provider.context_window("scripted") is None
    assert ChatModelProvider(ScriptedModel(), context_window=9).context_window("m") == 9
    known = ScriptedModel(profile={"max_input_tokens": 1000})
    assert ChatModelProvider(known).context_window("m") == 1000


async def test_a_graph_streams_the_tokens_and_does_not_repeat_the_message() -> None:
    provider = ChatModelProvider(ScriptedModel(["one two three"]))

    async def node(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [(await ask(provider, *state["messages"])).message]}

    graph = StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile()
    shown: list[AIMessageChunk] = []
    told: Any
    async for told in graph.astream({"messages": [HumanMessage("hi")]}, stream_mode="messages"):
        shown.append(told[0])
    assert "".join(chunk.text for chunk in shown) == "one two three"
    assert len({chunk.id for chunk in shown}) == 1
