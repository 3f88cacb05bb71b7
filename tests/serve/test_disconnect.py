"""A client that leaves: the work for it is cancelled, and nothing else changes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from starlette.types import Message, Receive, Scope, Send

from loopwright.errors import BusyThreadError
from loopwright.graph.entrance import AgentGraph
from loopwright.serve import create_app
from loopwright.serve.disconnect import CancelOnDisconnect
from loopwright.testing import Gate, Response

pytestmark = pytest.mark.anyio

BODY = b'{"input": "hi", "config": {"configurable": {"thread_id": "t"}}}'
SCOPE: Scope = {
    "type": "http",
    "method": "POST",
    "path": "/invoke",
    "raw_path": b"/invoke",
    "query_string": b"",
    "scheme": "http",
    "http_version": "1.1",
    "headers": [(b"host", b"localhost")],
    "server": ("localhost", 80),
}


class Client:
    """A client that sends its body in pieces and leaves when told to."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.leaves = Gate()
        self.got: list[Message] = []

    async def receive(self) -> Message:
        if self._pieces:
            body = self._pieces.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self._pieces)}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.got.append(message)


@pytest.mark.parametrize("route", ["/invoke", "/stream", "/stream_events"])
async def test_a_run_whose_client_leaves_is_cancelled(
    graph: Callable[..., AgentGraph], route: str
) -> None:
    inside, cancelled = Gate(), Gate()

    async def work() -> str:
        """Work for long."""
        inside.open()
        try:
            await Gate().wait()
        except asyncio.CancelledError:
            cancelled.open()
            raise
        return "done"

    served = graph([Response(calls=[("c1", "work", {})]), "next"], work)
    client = Client(BODY)
    scope = {**SCOPE, "path": route, "raw_path": route.encode()}
    asking = asyncio.ensure_future(create_app(served)(scope, client.receive, client.send))
    await inside.wait()
    client.leaves.open()
    await cancelled.wait()
    await asking
    on: Any = {"configurable": {"thread_id": "t"}}
    stored = (await served.aget_state(on)).values["messages"]
    assert isinstance(stored[-1], AIMessage) and stored[-1].tool_calls
    assert (await _as_soon_as_free(served, on))["result"]["final_text"] == "next"


async def _as_soon_as_free(graph: AgentGraph, on: Any) -> Any:
    """The output of another run: the cancelled one may still be cleaning up."""
    for _ in range(10_000):
        try:
            return await graph.ainvoke("again", on)
        except BusyThreadError:
            await asyncio.sleep(0)
    raise AssertionError("the cancelled run never ended")


async def test_the_whole_request_reaches_the_application() -> None:
    got: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while not got or got[-1].get("more_body"):
            got.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})

    client = Client(b"one", b"two", b"three")
    await CancelOnDisconnect(app)(SCOPE, client.receive, client.send)
    assert [message["body"] for message in got] == [b"one", b"two", b"three"]
    assert [message["type"] for message in client.got] == ["http.response.start"]


async def test_an_application_that_asks_is_told_of_the_disconnect() -> None:
    got: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        got.append(await receive())
        client.leaves.open()
        try:
            await Gate().wait()
        finally:
            got.append(await receive())

    client = Client(b"")
    await CancelOnDisconnect(app)(SCOPE, client.receive, client.send)
    assert [message["type"] for message in got] == ["http.request", "http.disconnect"]


async def test_a_failure_reaches_the_layer_above() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("wrong")

    client = Client(b"")
    with pytest.raises(ValueError, match="wrong"):
        await CancelOnDisconnect(app)(SCOPE, client.receive, client.send)


async def test_a_server_that_stops_cancels_the_work_and_waits_for_it() -> None:
    inside, cleaned = Gate(), Gate()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        inside.open()
        try:
            await Gate().wait()
        finally:
            cleaned.open()

    client = Client(b"")
    serving = asyncio.ensure_future(CancelOnDisconnect(app)(SCOPE, client.receive, client.send))
    await inside.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert cleaned.is_open
