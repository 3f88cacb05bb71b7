"""What the HTTP application takes and gives: inputs, threads, streams, batches, pages."""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from loopwright.events import from_json
from loopwright.testing import Response
from tests.serve.conftest import HOST, SYSTEM_PROMPT

pytestmark = pytest.mark.anyio

Served = Callable[..., httpx.AsyncClient]
HI = {"messages": [{"role": "user", "content": "hi"}]}


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


DOUBLING = (Response(calls=[("c1", "double", {"n": 4})]), "It is 8.")


def told(response: httpx.Response) -> list[tuple[str, Any]]:
    """The server-sent events of a response: name and data."""
    blocks = response.raise_for_status().text.replace("\r\n", "\n").strip().split("\n\n")
    fields = [dict(line.split(": ", 1) for line in b.splitlines()) for b in blocks if b[0] != ":"]
    return [(f["event"], json.loads(f["data"]) if "data" in f else None) for f in fields]


def thread_of(response: httpx.Response) -> str:
    return str(response.raise_for_status().json()["output"]["result"]["thread"])


@pytest.mark.parametrize(
    "given",
    [
        HI,
        {"messages": [{"type": "human", "content": "hi"}]},
        {"messages": [["user", "hi"]]},
        {"messages": {"role": "user", "content": "hi"}},
        {"messages": "hi"},
        [{"role": "user", "content": "hi"}],
        "hi",
    ],
    ids=["roles", "types", "pairs", "one", "text", "list", "bare_text"],
)
async def test_an_input_may_be_written_in_each_usual_form(served: Served, given: Any) -> None:
    async with served(["hello"]) as client:
        response = await client.post("/invoke", json={"input": given})
    messages = response.raise_for_status().json()["output"]["messages"]
    assert [(m["type"], m["content"]) for m in messages] == [("human", "hi"), ("ai", "hello")]


@pytest.mark.parametrize(
    ("config", "headers", "thread"),
    [
        ({"configurable": {"thread_id": "body"}}, {}, "body"),
        ({}, {"X-Thread-Id": "header"}, "header"),
        ({"configurable": {"thread_id": "body"}}, {"X-Thread-Id": "header"}, "body"),
        ({"configurable": {"thread_id": None}}, {"X-Thread-Id": "header"}, "header"),
    ],
)
async def test_the_thread_is_the_body_s_or_else_the_header_s(
    served: Served, config: Any, headers: dict[str, str], thread: str
) -> None:
    async with served(["one", "two"]) as client:
        body = {"input": HI, "config": config}
        for length in (2, 4):
            response = await client.post("/invoke", json=body, headers=headers)
            assert thread_of(response) == thread
            assert len(response.json()["output"]["messages"]) == length


async def test_without_a_thread_each_run_has_its_own(served: Served) -> None:
    async with served(["one", "two"]) as client:
        threads = {thread_of(await client.post("/invoke", json={"input": HI})) for _ in range(2)}
    assert len(threads) == 2


async def test_a_thread_is_continued_without_new_messages(served: Served) -> None:
    body = {"input": {"continue": True}, "config": {"configurable": {"thread_id": "t"}}}
    async with served(DOUBLING, double, turns=1) as client:
        limited = await client.post("/invoke", json={**body, "input": HI})
        assert limited.json()["output"]["result"]["status"] == "limit"
        answered = await client.post("/invoke", json=body)
        assert answered.json()["output"]["result"]["final_text"] == "It is 8."
        refused = await client.post("/invoke", json=body)
    assert (refused.status_code, "send a prompt" in refused.json()["detail"]) == (409, True)


async def test_a_request_cannot_reach_what_the_entrance_keeps_in_the_config(served: Served) -> None:
    inside = {"thread_id": "t", "checkpoint_id": "x", "__loopwright_run": {}, "checkpoint_ns": "n"}
    async with served(["one"]) as client:
        body = {"input": HI, "config": {"configurable": inside, "callbacks": [], "run_name": "x"}}
        assert thread_of(await client.post("/invoke", json=body)) == "t"


async def test_stream_carries_our_events(served: Served) -> None:
    async with served(DOUBLING, double) as client:
        names, data = zip(*told(await client.post("/stream", json={"input": HI})), strict=True)
    assert names == ("metadata", *["data"] * (len(names) - 2), "end")
    events = [from_json(event) for event in data[1:-1]]
    assert [event.sequence for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("agent_start", "agent_end")
    assert "tool_execution_end" in {event.type for event in events}


async def test_stream_events_carries_our_events_and_the_model_s_but_no_node_s(
    served: Served,
) -> None:
    async with served(DOUBLING, double) as client:
        response = await client.post("/stream_events", json={"input": HI})
    events = [data for name, data in told(response) if name == "data"]
    ours = [from_json(e["data"]) for e in events if e["event"] == "on_custom_event"]
    assert [event.sequence for event in ours] == list(range(len(ours)))
    assert (ours[0].type, ours[-1].type) == ("agent_start", "agent_end")
    assert [e["event"] for e in events if e["event"].startswith("on_chain")] == [
        "on_chain_start",
        "on_chain_end",
    ]
    assert events[-1]["data"]["output"]["result"]["final_text"] == "It is 8."
    assert "on_chat_model_stream" in {e["event"] for e in events}


async def test_no_stream_but_the_model_s_input_shows_the_system_prompt(served: Served) -> None:
    async with served(["one", "two"]) as client:
        stream = await client.post("/stream", json={"input": HI})
        invoked = await client.post("/invoke", json={"input": HI})
    assert SYSTEM_PROMPT not in stream.text + invoked.text


@pytest.mark.filterwarnings("ignore:astream_log is deprecated")
async def test_the_playground_s_log_ends_with_the_output(served: Served) -> None:
    async with served(DOUBLING, double) as client:
        response = await client.post("/stream_log", json={"input": HI})
    operations = [op for name, data in told(response) if name == "data" for op in data["ops"]]
    outputs = [op["value"] for op in operations if op["path"] == "/final_output"]
    assert outputs[-1]["result"]["final_text"] == "It is 8."


async def test_the_playground_needs_no_other_server(served: Served) -> None:
    async with served() as client:
        home = await client.get("/")
        page = await client.get(home.headers["location"])
        links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert links
        for link in links:
            assert (await client.get(link)).is_success, link
        assert (await client.get("/docs")).status_code == 404


async def test_a_batch_runs_each_input_on_its_thread(served: Served) -> None:
    body = {
        "inputs": [HI, HI],
        "config": [{"configurable": {"thread_id": "a"}}, {"configurable": {}}],
    }
    async with served(["one", "two"]) as client:
        response = await client.post("/batch", json=body)
    threads = [o["result"]["thread"] for o in response.raise_for_status().json()["output"]]
    assert threads[0] == "a" != threads[1]


SHARED: dict[str, tuple[Any, dict[str, str]]] = {
    "one config": ({"configurable": {"thread_id": "t"}}, {}),
    "the header": ({}, {"X-Thread-Id": "t"}),
    "a list": ([{"configurable": {"thread_id": "t"}}] * 2, {}),
    "a list and the header": ([{"configurable": {"thread_id": "t"}}, {}], {"X-Thread-Id": "t"}),
}


@pytest.mark.parametrize(("config", "headers"), SHARED.values(), ids=SHARED)
async def test_a_batch_on_one_thread_is_refused_before_any_of_it_runs(
    served: Served, config: Any, headers: dict[str, str]
) -> None:
    async with served(["only answer"]) as client:
        body = {"inputs": [HI, HI], "config": config}
        response = await client.post("/batch", json=body, headers=headers)
        assert response.status_code == 400
        assert "a thread of its own" in response.json()["detail"]
        one = {"inputs": [HI], "config": {"configurable": {"thread_id": "t"}}}
        assert (await client.post("/batch", json=one)).is_success


async def test_the_schemas_say_what_goes_in_and_out(served: Served) -> None:
    async with served() as client:
        given, got, config = [
            (await client.get(f"/{kind}_schema")).raise_for_status().json()
            for kind in ("input", "output", "config")
        ]
        assert (await client.get("/openapi.json")).is_success
    assert list(given["properties"]) == given["required"] == ["messages"]
    assert list(got["properties"]) == got["required"] == ["messages", "result"]
    assert list(config["$defs"]["ServedConfigurable"]["properties"]) == ["thread_id"]


async def test_a_path_puts_the_routes_below_it(graph: Callable[..., Any], served: Served) -> None:
    from loopwright.serve import create_app
    from tests.serve.conftest import client

    async with client(create_app(graph(["hello"]), path="/agent")) as asking:
        assert (await asking.post("/agent/invoke", json={"input": HI})).is_success
        assert (await asking.get("/")).headers["location"] == "/agent/playground/"
        assert (await asking.get("/ok")).json() == {"ok": True}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": f"http://{HOST}"}, 200),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_a_page_of_another_site_is_refused(
    served: Served, headers: dict[str, str], status: int
) -> None:
    async with served(["hello"]) as client:
        response = await client.post("/invoke", json={"input": HI}, headers=headers)
    assert response.status_code == status


async def test_names_that_are_not_the_server_s_are_refused(graph: Callable[..., Any]) -> None:
    from loopwright.serve import create_app
    from loopwright.serve.server import LOCAL_NAMES
    from tests.serve.conftest import client

    async with client(create_app(graph(), hosts=LOCAL_NAMES)) as asking:
        for host, status in (("localhost:1", 200), ("[::1]:1", 200), ("rebound.example", 400)):
            response = await asking.get("/ok", headers={"host": host})
            assert response.status_code == status, host
