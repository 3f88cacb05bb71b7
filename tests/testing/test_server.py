"""The test server speaks HTTP to real clients: the script arrives, and requests are recorded."""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright.testing import (
    Drop,
    Gate,
    HttpReply,
    OpenAIServer,
    Pause,
    RawReply,
    Response,
    SseReply,
    VirtualClock,
)

CALL = ("c1", "look", {"at": "sky"})
FULL = Response(
    text="Two words.", thinking="hm", calls=[CALL], usage={"input_tokens": 5, "output_tokens": 2}
)


def client(server: OpenAIServer, **fields: Any) -> ChatOpenAI:
    key = SecretStr("sk-test")
    return ChatOpenAI(model="m", base_url=server.base_url, api_key=key, max_retries=0, **fields)


def post(
    server: OpenAIServer, path: str = "/chat/completions", **body: Any
) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of a plain POST."""
    request = urllib.request.Request(server.base_url + path, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def events(body: str) -> list[Any]:
    datas = [line.removeprefix("data: ") for line in body.split("\n\n") if line]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


def test_a_response_arrives_whole_and_streamed_at_a_real_client() -> None:
    with OpenAIServer([FULL, FULL]) as server:
        model = client(server)
        told = model.invoke("hi")
        streamed = list(model.stream("hi", stream_usage=True))
    assert (told.content, told.response_metadata["finish_reason"]) == ("Two words.", "tool_calls")
    assert [(c["id"], c["name"], c["args"]) for c in told.tool_calls] == [CALL]
    assert [chunk.content for chunk in streamed if chunk.content] == ["Two ", "words."]
    usages: list[Any] = [told.usage_metadata, *[c.usage_metadata for c in streamed]]
    assert [usage["total_tokens"] for usage in usages if usage] == [7, 7]


@pytest.mark.anyio
async def test_it_serves_an_event_loop_in_an_async_with() -> None:
    async with OpenAIServer(["one", AIMessage("two")]) as server:
        model = client(server)
        said = [(await model.ainvoke("hi")).text for _ in range(2)]
    assert said == ["one", "two"]


def test_requests_are_recorded_with_headers_and_body() -> None:
    with OpenAIServer(["x"]) as server:
        client(server, temperature=0.5).invoke("hello")
        (sent,) = server.requests
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["authorization"] == "Bearer sk-test"
    assert sent.body["messages"] == [{"role": "user", "content": "hello"}]
    assert sent.body["temperature"] == 0.5
    assert not sent.gone.is_open


def test_a_stream_has_the_deltas_the_end_and_the_usage_of_the_script() -> None:
    with OpenAIServer([FULL]) as server:
        status, headers, body = post(server, stream=True, model="asked")
    *chunks, done = events(body)
    assert (status, headers["content-type"], done) == (200, "text/event-stream", "[DONE]")
    assert {chunk["model"] for chunk in chunks} == {"asked"}
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [d["reasoning_content"] for d in deltas if "reasoning_content" in d] == ["hm"]
    parts = [call["function"]["arguments"] for d in deltas for call in d.get("tool_calls", [])]
    assert json.loads("".join(parts)) == CALL[2]
    assert len(parts) > 2
    stops = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert stops == [None] * (len(stops) - 1) + ["tool_calls"]
    assert chunks[-1]["usage"]["total_tokens"] == 7


def test_a_whole_answer_holds_thinking_and_calls() -> None:
    with OpenAIServer([FULL]) as server:
        _, _, body = post(server)
    (choice,) = json.loads(body)["choices"]
    assert choice["message"]["reasoning_content"] == "hm"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == CALL[2]


def test_an_error_has_its_status_headers_and_body() -> None:
    replies = [
        HttpReply(status=429, body={"error": {"message": "slow"}}, headers={"retry-after": "7"}),
        HttpReply(status=599, body="plain"),
    ]
    with OpenAIServer(replies) as server:
        status, headers, body = post(server)
        assert (status, headers["retry-after"]) == (429, "7")
        assert json.loads(body) == {"error": {"message": "slow"}}
        assert post(server)[::2] == (599, "plain")


def test_raw_events_and_raw_bytes_are_sent_as_they_are() -> None:
    with OpenAIServer(
        [
            SseReply(events=[{"a": 1}, "not json"]),
            SseReply(events=["x"], done=False),
            RawReply(writes=[b"da", b"ta: {\n"], status=203, content_type="text/odd"),
            Response(chunks=[{"b": 2}]),
        ]
    ) as server:
        assert post(server)[2] == 'data: {"a": 1}\n\ndata: not json\n\ndata: [DONE]\n\n'
        assert post(server)[2] == "data: x\n\n"
        status, headers, body = post(server)
        assert (status, headers["content-type"], body) == (203, "text/odd", "data: {\n")
        assert events(post(server, stream=True)[2]) == [{"b": 2}, "[DONE]"]


def test_a_callable_sees_the_body_and_may_choose_any_reply() -> None:
    def refuse(body: Any) -> HttpReply:
        return HttpReply(status=413, body=f"{len(body['messages'])} messages")

    with OpenAIServer([refuse]) as server:
        assert post(server, messages=[1, 2])[::2] == (413, "2 messages")


def test_a_used_up_script_and_an_unknown_path_are_errors_that_say_so() -> None:
    with OpenAIServer() as server:
        status, _, body = post(server)
        assert (status, "no answer for request 1" in body) == (400, True)
        assert post(server, "/models")[0] == 404


@pytest.mark.parametrize("reset", [True, False])
def test_a_break_leaves_the_answer_without_its_end(reset: bool) -> None:
    with OpenAIServer([SseReply(events=["x", Pause(0), Drop(reset)])]) as server:
        answer, was_reset = _raw(server)
        assert not answer.endswith(b"0\r\n\r\n")
        assert was_reset == reset
        assert not server.requests[0].gone.is_open


def _raw(server: OpenAIServer) -> tuple[bytes, bool]:
    """All bytes that answer a POST, and whether the connection was reset behind them."""
    host, port = server.base_url.removeprefix("http://").split("/")[0].split(":")
    answer = b""
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            return answer, True
    return answer, False


def test_an_answer_comes_in_one_chunk_for_each_write() -> None:
    with OpenAIServer([RawReply(writes=[b"ab", b"", b"c"])]) as server:
        answer, _ = _raw(server)
    assert answer.partition(b"\r\n\r\n")[2] == b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"


@pytest.mark.anyio
async def test_pauses_take_the_server_s_clock() -> None:
    clock = VirtualClock()
    reply = SseReply(events=[Pause(30), "x"])
    async with OpenAIServer([reply], clock=clock) as server:
        asking = asyncio.create_task(asyncio.to_thread(post, server))
        await clock.sleepers(1)
        clock.advance(30)
        assert "data: x" in (await asking)[2]
    assert clock.sleeps == [30]


@pytest.mark.anyio
async def test_a_client_that_leaves_is_seen() -> None:
    gate = Gate()
    async with OpenAIServer([Response(text="a", wait_for=gate)]) as server:
        asking = asyncio.create_task(client(server).ainvoke("hi"))
        await gate.reached()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.requests[0].gone.wait()


def test_closing_does_not_wait_for_open_answers_and_frees_the_port() -> None:
    gate = Gate()
    with OpenAIServer([Response(text="never", wait_for=gate, wait_after=0)]) as server:
        address = server.base_url.removeprefix("http://").split("/")[0].split(":")
        connection = socket.create_connection((address[0], int(address[1])))
        with connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            assert gate.reached_blocking(30)
            server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address[0], int(address[1])))
    with pytest.raises(RuntimeError, match="not running"):
        server.base_url.strip()


def test_two_servers_run_side_by_side() -> None:
    with OpenAIServer(["one"]) as first, OpenAIServer(["two"]) as second:
        assert first.base_url != second.base_url
        assert (client(second).invoke("hi").text, client(first).invoke("hi").text) == ("two", "one")


def test_connections_are_kept_only_if_asked_for() -> None:
    for keep_alive, connections in ((True, 1), (False, 2)):
        with OpenAIServer(["a", "b"], keep_alive=keep_alive) as server:
            model = client(server)
            assert [model.invoke("hi").text for _ in range(2)] == ["a", "b"]
            assert server.connections == connections
            model.root_client.close()
