"""Langchain tools as they are: every kind of schema, injection, answer and error handling."""

import asyncio
import threading
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    tool,
)
from langchain_core.tools import Tool as TextTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, Field
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1
from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError
from tests.tools.running import as_tool, content, context, failure

pytestmark = pytest.mark.anyio


class Search(BaseModel):
    query: str = Field(description="what to look for")
    limit: int = 3


class SearchV1(BaseModelV1):
    query: str = FieldV1(description="what to look for")
    limit: int = 3


JSON_SCHEMA = {
    "title": "Search",
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what to look for"},
        "limit": {"type": "integer", "default": 3},
    },
    "required": ["query"],
}


def search(query: str, limit: int = 3) -> str:
    """Search for it."""
    return f"{query} {limit}"


async def search_async(query: str, limit: int = 3) -> str:
    """Search for it."""
    return f"{query} {limit}"


@pytest.mark.parametrize("schema", [None, Search, SearchV1, JSON_SCHEMA])
@pytest.mark.parametrize("body", [search, search_async])
async def test_every_kind_of_schema_and_body_works(schema: Any, body: Any) -> None:
    kinds = {"coroutine": body} if asyncio.iscoroutinefunction(body) else {"func": body}
    made = StructuredTool.from_function(
        **kinds, name="search", description="Search for it.", args_schema=schema
    )
    ours = as_tool(made)
    assert (ours.name, ours.description) == ("search", "Search for it.")
    assert list(ours.parameters["properties"]) == ["query", "limit"]
    assert ours.parameters["required"] == ["query"]
    if schema:
        assert ours.parameters["properties"]["query"]["description"] == "what to look for"
    assert await content(made, {"query": "tea", "limit": "5"}) == "tea 5"
    assert await content(made, {"query": "tea"}) == "tea 3"


async def test_a_tool_with_one_text_argument_works() -> None:
    shout = TextTool(name="shout", description="Say it loudly.", func=str.upper)
    (name,) = as_tool(shout).parameters["properties"]
    assert await content(shout, {name: "hi"}) == "HI"


class Sync(BaseTool):
    name: str = "sync"
    description: str = "Sync only."
    calls: int = 0

    def _run(self, x: int, runtime: ToolRuntime) -> dict[str, Any]:
        self.calls += 1
        return {"x": x, "id": runtime.tool_call_id, "thread": threading.get_ident()}


class Async(BaseTool):
    name: str = "async"
    description: str = "Async only."

    def _run(self, x: int) -> str:
        raise NotImplementedError

    async def _arun(self, x: int) -> str:
        return f"{x} {threading.get_ident()}"


async def test_a_class_that_is_sync_only_runs_in_a_thread_and_keeps_its_state() -> None:
    made = Sync()
    ours = as_tool(made)
    assert list(ours.parameters["properties"]) == ["x"]
    assert str(threading.get_ident()) not in await content(ours, {"x": 1})
    assert '"id": "call-1"' in await content(ours, {"x": 1})
    assert made.calls == 2


async def test_a_class_that_is_async_only_runs_in_the_loop() -> None:
    assert await content(Async(), {"x": 1}) == f"1 {threading.get_ident()}"


async def test_many_sync_tools_run_at_the_same_time() -> None:
    everyone = threading.Barrier(60)

    @tool
    def meet() -> str:
        """Wait for the others."""
        everyone.wait(30)
        return "met"

    assert await asyncio.gather(*(content(meet) for _ in range(60))) == ["met"] * 60


def everything(
    x: int,
    call: Annotated[str, InjectedToolCallId],
    state: Annotated[dict[str, Any], InjectedState],
    count: Annotated[int, InjectedState("count")],
    store: Annotated[Any, InjectedStore()],
    runtime: ToolRuntime,
    config: RunnableConfig,
) -> str:
    """Look at everything."""
    assert runtime.state["count"] == state["count"] == count
    assert runtime.store is store
    assert runtime.tool_call_id == call
    thread = config["configurable"]["thread_id"]
    return f"{x} {call} {count} {len(state['messages'])} {type(store).__name__} {thread}"


async def test_all_that_langchain_injects_is_injected_and_hidden() -> None:
    within = context(state={"messages": [HumanMessage("hi")], "count": 7}, store=InMemoryStore())
    made = tool(everything)
    assert list(as_tool(made).parameters["properties"]) == ["x"]
    assert as_tool(made).parameters["required"] == ["x"]
    assert await content(made, {"x": 1}, within) == "1 call-1 7 1 InMemoryStore thread-1"


async def test_the_model_cannot_set_what_is_injected() -> None:
    within = context(state={"messages": [], "count": 7}, store=InMemoryStore())
    forged = {"x": 1, "call": "forged", "count": 0, "state": {}, "store": None, "runtime": None}
    made = tool(everything)
    assert await content(made, forged, within) == "1 call-1 7 0 InMemoryStore thread-1"

    @tool
    def pay(to: str, account: Annotated[str, InjectedToolArg] = "mine") -> str:
        """Pay."""
        return f"{to} from {account}"

    assert list(as_tool(pay).parameters["properties"]) == ["to"]
    assert await content(pay, {"to": "you", "account": "yours"}) == "you from mine"


async def test_what_is_missing_for_an_injection_is_an_error_result() -> None:
    @tool
    def count(count: Annotated[int, InjectedState("count")]) -> str:
        """Count."""
        return str(count)

    assert "field 'count'" in await failure(count)


class State(TypedDict):
    out: str


class Context(TypedDict):
    user: str


async def test_context_writer_and_config_of_the_graph_around_reach_the_tool() -> None:
    @tool
    def who(runtime: ToolRuntime[Context, Any], config: RunnableConfig) -> str:
        """Say who it is."""
        runtime.stream_writer({"seen": "by the graph"})
        return f"{runtime.context['user']} {config['configurable']['thread_id']}"

    async def node(state: State, runtime: Runtime[Context]) -> State:
        return {"out": await content(who)}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile()
    config: RunnableConfig = {"configurable": {"thread_id": "outer"}}
    streamed = [
        part
        async for part in graph.astream(
            {"out": ""}, config, context={"user": "ada"}, stream_mode=["custom", "values"]
        )
    ]
    assert ("custom", {"seen": "by the graph"}) in streamed
    assert streamed[-1] == ("values", {"out": "ada outer"})


async def test_callbacks_of_the_tool_hear_the_call() -> None:
    heard: list[str] = []

    class Ear(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
            heard.append(f"start {input_str} {kwargs['tool_call_id']}")

        def on_tool_end(self, output: Any, **kwargs: Any) -> None:
            heard.append(f"end {output.content}")

    made = StructuredTool.from_function(search, callbacks=[Ear()])
    await content(made, {"query": "tea"})
    assert heard == ["start {'query': 'tea'} call-1", "end tea 3"]


@pytest.mark.parametrize(
    ("metadata", "effects"),
    [
        (None, "unsafe"),
        ({}, "unsafe"),
        ({"readOnlyHint": True}, "none"),
        ({"readOnlyHint": True, "destructiveHint": True}, "unsafe"),
        ({"readOnlyHint": False, "idempotentHint": True}, "idempotent"),
        ({"idempotentHint": True, "destructiveHint": True}, "idempotent"),
        ({"readOnlyHint": "yes"}, "unsafe"),
        ({"effects": "idempotent", "readOnlyHint": True}, "idempotent"),
    ],
)
async def test_effects_come_from_the_metadata(metadata: Any, effects: str) -> None:
    assert as_tool(StructuredTool.from_function(search, metadata=metadata)).effects == effects


async def test_effects_may_be_among_the_extras_and_the_metadata_comes_first() -> None:
    made = StructuredTool.from_function(search, extras={"effects": "none", "cache": True})
    assert as_tool(made).effects == "none"
    both = StructuredTool.from_function(
        search, extras={"effects": "none"}, metadata={"effects": "idempotent"}
    )
    assert as_tool(both).effects == "idempotent"


async def test_a_tool_finds_the_idempotency_key_in_its_config() -> None:
    def send(to: str, config: RunnableConfig) -> str:
        """Send a letter."""
        return str(config["configurable"]["idempotency_key"])

    made = StructuredTool.from_function(send)
    assert await content(made, {"to": "maya"}, context(idempotency_key="k1")) == "k1"


async def test_the_execution_mode_comes_from_the_metadata() -> None:
    made = StructuredTool.from_function(search, metadata={"execution_mode": "sequential"})
    assert as_tool(made).execution_mode == "sequential"
    assert as_tool(StructuredTool.from_function(search)).execution_mode is None


@pytest.mark.parametrize("metadata", [{"effects": "few"}, {"execution_mode": "later"}])
async def test_metadata_that_makes_no_sense_is_refused(metadata: Any) -> None:
    with pytest.raises(ConfigurationError, match="tool 'search'"):
        as_tool(StructuredTool.from_function(search, metadata=metadata))


async def test_a_schema_without_a_json_form_is_refused() -> None:
    class Odd(BaseModel, arbitrary_types_allowed=True):
        lock: threading.Event

    made = StructuredTool.from_function(
        lambda lock: "", name="odd", description="", args_schema=Odd
    )
    with pytest.raises(ConfigurationError, match="tool 'odd'"):
        as_tool(made)


async def test_the_user_s_tool_is_not_changed() -> None:
    made = StructuredTool.from_function(search)
    assert await content(made, {"query": "tea"}) == "tea 3"
    assert made.func is search
    assert await made.ainvoke({"query": "tea"}) == "tea 3"


async def test_a_message_of_the_model_is_not_needed_to_run_a_tool() -> None:
    @tool
    def last(messages: Annotated[list[Any], InjectedState("messages")]) -> str:
        """Show the last message."""
        return str(messages[-1].content)

    assert await content(last, within=context(state={"messages": [AIMessage("me")]})) == "me"
