"""One way of asking for each entrance, so that a check can be written once.

What is asked is the tests' own; the processes behind two of the entrances are in `processes`.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import httpx
from langchain_core.messages import AnyMessage, messages_to_dict
from langgraph_sdk import get_client
from langserve import RemoteRunnable

from loopwright import Agent, InputError, UnknownThreadError
from loopwright.events import AnyEvent, from_json
from tests.entrances import scripted
from tests.entrances.processes import PATIENCE, Process


class Refused(Exception):
    """The entrance did not run the input; the text is what it said instead."""


class Way(Protocol):
    """A way in. Threads are UUIDs, because the dev server takes nothing else."""

    database: Path

    async def run(self, given: Any, thread: str, **config: Any) -> dict[str, Any]:
        """The output of a run in its JSON form; `config` is the caller's. Raises Refused."""
        ...

    def events(self, given: Any, thread: str) -> AsyncIterator[AnyEvent]:
        """Our events, as this way in delivers them."""
        ...

    async def input_schema(self) -> dict[str, Any]:
        """The JSON schema of an input."""
        ...


def new_thread() -> str:
    """The id of a thread that nothing is stored under yet."""
    return str(uuid4())


def prompt(text: str) -> dict[str, Any]:
    """An input with one message, as a client of a server writes it."""
    return {"messages": [{"role": "user", "content": text}]}


def ledger(database: Path, thread: str) -> list[AnyMessage]:
    """What the database holds of a thread, read by an agent of its own."""
    with scripted.agent(database) as agent:
        try:
            return agent.messages(thread)
        except UnknownThreadError:
            return []


def texts(output: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Kind and text of the messages of an output."""
    return [(message["type"], message["content"]) for message in output["messages"]]


class ByAgent:
    """The library itself, in this process: `prompt`, or its graph where a config is given."""

    def __init__(self, agent: Agent, database: Path) -> None:
        self.agent = agent
        self.database = database

    async def run(self, given: Any, thread: str, **config: Any) -> dict[str, Any]:
        try:
            if not config and set(given) == {"messages"}:
                result = await self.agent.prompt(given["messages"], thread=thread)
                messages = self.agent.messages(thread)
                outcome: Any = vars(result)
            else:
                full: Any = {**config, "configurable": {"thread_id": thread}}
                output = await self.agent.graph.ainvoke(given, full)
                messages, outcome = output["messages"], output["result"]
        except InputError as error:
            raise Refused(str(error)) from error
        return {"messages": [m["data"] for m in messages_to_dict(messages)], "result": outcome}

    async def events(self, given: Any, thread: str) -> AsyncIterator[AnyEvent]:
        async for event in self.agent.stream(given["messages"], thread=thread):
            yield event

    async def input_schema(self) -> dict[str, Any]:
        return self.agent.graph.get_input_jsonschema()


class ByLangServe:
    """LangServe's routes over HTTP; its own client reads the stream."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.url = process.url
        self.database = process.database

    async def post(self, route: str, body: Any, **headers: str) -> httpx.Response:
        """Send a body to a route."""
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client:
            return await client.post(route, json=body, headers=headers)

    async def run(self, given: Any, thread: str, **config: Any) -> dict[str, Any]:
        config = {**config, "configurable": {"thread_id": thread}}
        response = await self.post("/invoke", {"input": given, "config": config})
        if response.is_client_error:
            raise Refused(response.json()["detail"])
        output: dict[str, Any] = response.raise_for_status().json()["output"]
        return output

    async def events(self, given: Any, thread: str) -> AsyncIterator[AnyEvent]:
        async for data in self.remote.astream(given, {"configurable": {"thread_id": thread}}):
            yield from_json(dict(data))

    @property
    def remote(self) -> "RemoteRunnable[Any, Any]":
        """The agent as LangServe's client sees it."""
        return RemoteRunnable(self.url, timeout=PATIENCE)

    async def input_schema(self) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=self.url) as client:
            schema: dict[str, Any] = (await client.get("/input_schema")).json()
            return schema


class ByDevServer:
    """`langgraph dev` through its SDK; no context is given."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.url = process.url
        self.database = process.database

    async def run(self, given: Any, thread: str, **config: Any) -> dict[str, Any]:
        full: Any = config
        async with get_client(url=self.url, timeout=PATIENCE) as client:
            output: Any = await client.runs.wait(
                thread,
                "agent",
                input=given,
                config=full,
                if_not_exists="create",
                raise_error=False,
            )
        if "__error__" in output:
            assert output["__error__"]["error"] == "InputError", output
            raise Refused(output["__error__"]["message"])
        return dict(output)

    async def events(self, given: Any, thread: str) -> AsyncIterator[AnyEvent]:
        async with get_client(url=self.url, timeout=PATIENCE) as client:
            stream = client.runs.stream(
                thread, "agent", input=given, if_not_exists="create", stream_mode="custom"
            )
            async for part in stream:
                if part.event == "custom":
                    yield from_json(dict(part.data))

    async def input_schema(self) -> dict[str, Any]:
        async with get_client(url=self.url) as client:
            (assistant,) = await client.assistants.search(graph_id="agent")
            schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        return dict(schemas["input_schema"] or {})

    async def drawing(self) -> dict[str, Any]:
        """The graph as Studio draws it."""
        async with get_client(url=self.url) as client:
            return dict(await client.assistants.get_graph("agent"))
