"""What a client is told when something goes wrong: a status and one line, no traceback."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    ContinuationError,
    DatabaseError,
    InputError,
    LeaseLostError,
    LoopwrightError,
    MissingKeyError,
    StateError,
    UnknownModelError,
    UnknownThreadError,
)
from loopwright.graph.entrance import AgentGraph
from loopwright.serve import create_app
from loopwright.serve.app import Answers
from loopwright.serve.refusals import invalid
from loopwright.testing import Gate, Response
from tests.serve.conftest import client

pytestmark = pytest.mark.anyio

HI = {"input": {"messages": [{"role": "user", "content": "hi"}]}}
ROUTES = ("/invoke", "/stream", "/stream_events")


async def answer(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> httpx.Response:
    """What a client gets of a small application behind the outermost layer."""
    transport = httpx.ASGITransport(Answers(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as asking:
        return await asking.get("/")


def failing(error: Exception, *before: Message) -> Callable[[Scope, Receive, Send], Any]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in before:
            await send(message)
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("not a\nmessage"), 400),
        (UnknownThreadError("t"), 404),
        (BusyThreadError("t"), 409),
        (LeaseLostError("t", "run"), 409),
        (ContinuationError("nothing to do", thread="t"), 409),
        (ConfigurationError("wrong"), 422),
        (UnknownModelError("m", "offline"), 422),
        (MissingKeyError("m", "OPENAI_API_KEY"), 422),
    ],
)
async def test_an_error_that_a_client_can_act_on_is_told_in_one_line(
    error: LoopwrightError, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answer(failing(error))
    assert response.status_code == status
    assert response.json() == {"detail": " ".join(str(error).split())}
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RuntimeError("key sk-secret"), 500),
        (StateError("key sk-secret"), 500),
        (DatabaseError("/home/someone/sk-secret.db", "disk full", "free some"), 503),
    ],
)
async def test_any_other_error_is_told_to_the_log_only(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answer(failing(error))
    assert response.status_code == status
    assert "log" in response.json()["detail"]
    assert "secret" not in response.text
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("loopwright.serve", logging.ERROR)
    assert record.exc_info and record.exc_info[1] is error


START: Message = {"type": "http.response.start", "status": 200, "headers": []}
FAILED: Message = {
    "type": "http.response.body",
    "body": b"event: error\r\ndata: {}\r\n\r\n",
    "more_body": True,
}
PIECE: Message = {"type": "http.response.body", "body": b"event: data\r\n\r\n", "more_body": True}


async def test_a_stream_that_fails_before_its_first_piece_is_answered_with_a_status() -> None:
    response = await answer(failing(BusyThreadError("t"), START, FAILED))
    assert response.status_code == 409


async def test_a_stream_that_fails_later_ends_behind_its_error_event() -> None:
    response = await answer(failing(RuntimeError("sk-secret"), START, PIECE, FAILED))
    assert response.status_code == 200
    assert response.content == bytes(PIECE["body"] + FAILED["body"])


async def test_what_goes_well_is_passed_on_as_it_is() -> None:
    response = await answer(PlainTextResponse("event: erroneous? no, fine"))
    assert (response.status_code, response.text) == (200, "event: erroneous? no, fine")


@pytest.mark.parametrize("route", ROUTES)
async def test_a_wrong_setting_is_an_http_error_on_each_route(
    graph: Callable[..., AgentGraph], route: str
) -> None:
    async with client(create_app(graph(model="nobody/nothing"))) as asking:
        response = await asking.post(route, json=HI)
    assert response.status_code == 422
    assert "nobody/nothing" in response.json()["detail"]


@pytest.mark.parametrize("route", ROUTES)
async def test_a_busy_thread_is_an_http_error_on_each_route(
    graph: Callable[..., AgentGraph], route: str
) -> None:
    gate = Gate()
    served = graph([Response(text="late", wait_for=gate)])
    body = {**HI, "config": {"configurable": {"thread_id": "t"}}}
    async with client(create_app(served)) as asking, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(asking.post("/invoke", json=body))
        await gate.reached()
        second = await asking.post(route, json=body)
        gate.open()
    assert (second.status_code, first.result().status_code) == (409, 200)
    assert "'t' is busy" in second.json()["detail"]


async def test_a_model_that_fails_is_a_result_and_no_http_error(
    graph: Callable[..., AgentGraph],
) -> None:
    async with client(create_app(graph([ConnectionError("no route")]))) as asking:
        response = await asking.post("/invoke", json=HI)
    output = response.raise_for_status().json()["output"]
    assert output["result"]["status"] == "failed"
    assert output["messages"][0]["content"] == "hi"


WRONG: dict[str, tuple[Any, int]] = {
    "nothing": (None, 400),
    "a list": ([], 422),
    "no input": ({}, 422),
    "empty input": ({"input": None}, 400),
    "a number": ({"input": 5}, 400),
    "no messages": ({"input": {"prompt": "hi"}}, 400),
    "no content": ({"input": {"messages": [{"role": "user"}]}}, 400),
    "no role": ({"input": {"messages": [{"content": "hi"}]}}, 400),
    "odd role": ({"input": {"messages": [{"role": 5, "content": "hi"}]}}, 400),
    "odd content": ({"input": {"messages": [{"role": "user", "content": {"a": 1}}]}}, 400),
    "odd pair": ({"input": {"messages": [[1, 2, 3]]}}, 400),
    "result without call": ({"input": {"messages": [{"type": "tool", "content": "x"}]}}, 400),
    "odd configurable": ({**HI, "config": {"configurable": 5}}, 422),
    "odd thread": ({**HI, "config": {"configurable": {"thread_id": 5}}}, 422),
}


@pytest.mark.parametrize(("body", "status"), WRONG.values(), ids=WRONG)
async def test_a_malformed_request_is_told_what_is_wrong(
    graph: Callable[..., AgentGraph], body: Any, status: int
) -> None:
    async with client(create_app(graph())) as asking:
        response = await asking.post("/invoke", json=body)
    assert response.status_code == status
    detail = response.json()["detail"]
    assert isinstance(detail, str) and "\n" not in detail and len(detail) <= 500


@pytest.mark.parametrize("body", [b"{", b"", b"\xff"])
async def test_a_body_that_is_not_json_is_told_so(
    graph: Callable[..., AgentGraph], body: bytes
) -> None:
    async with client(create_app(graph())) as asking:
        for route in ("/invoke", "/batch", "/stream"):
            assert (await asking.post(route, content=body)).status_code == 400


@pytest.mark.parametrize("body", [[], {}, {"inputs": 5}, {"inputs": ["hi"], "config": [5]}])
async def test_a_malformed_batch_is_no_server_error(
    graph: Callable[..., AgentGraph], body: Any
) -> None:
    async with client(create_app(graph())) as asking:
        response = await asking.post("/batch", json=body)
    assert response.is_client_error, response.text


def test_the_first_fault_of_a_request_names_its_place() -> None:
    errors = [{"loc": ("body", "input", 0), "msg": "Field required"}, {"loc": (), "msg": "x"}]
    assert invalid(errors) == "body.input.0: Field required"
    assert invalid(["Invalid JSON body"]) == "Invalid JSON body"
    assert invalid([]) == "the request is not valid"
    assert json.dumps(invalid(["a\nb" * 400])).count("\\n") == 0
