"""Which parameters are injected, and what into."""

from typing import Annotated, Any, Optional

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.memory import InMemoryStore

from loopwright.tools.injection import Injection, injected, injection_of, injections
from tests.tools.running import context

CONFIG: RunnableConfig = {"configurable": {}}


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        (Annotated[dict[str, Any], InjectedState], Injection("state")),
        (Annotated[dict[str, Any], InjectedState()], Injection("state")),
        (Annotated[int, InjectedState("count")], Injection("state", "count")),
        (Optional[Annotated[int, InjectedState("count")]], Injection("state", "count")),  # noqa: UP045
        (Annotated[Any, InjectedStore()], Injection("store")),
        (Annotated[str, InjectedToolCallId], Injection("call_id")),
        (Annotated[str, InjectedToolArg()], Injection("unknown")),
        (ToolRuntime, Injection("runtime")),
        (ToolRuntime[dict[str, Any], Any], Injection("runtime")),
        (ToolRuntime | None, Injection("runtime")),
        (RunnableConfig, Injection("config")),
        (RunnableConfig | None, Injection("config")),
        (int, None),
        (list[dict[str, int]], None),
        (Annotated[int, "InjectedState"], None),
        ("InjectedState", None),
    ],
)
def test_a_hint_says_what_is_injected(hint: Any, found: Injection | None) -> None:
    assert injection_of(hint) == found


def test_schema_and_function_both_say_what_is_injected() -> None:
    @tool
    def look(
        x: int,
        count: Annotated[int, InjectedState("count")],
        call: Annotated[str, InjectedToolCallId],
        config: RunnableConfig,
        store: Annotated[Any, InjectedStore()] = None,
    ) -> str:
        """Look."""
        return ""

    assert injections(look) == {
        "count": Injection("state", "count"),
        "call": Injection("call_id"),
        "store": Injection("store", required=False),
    }


def test_a_tool_with_a_dict_schema_is_read_from_its_function() -> None:
    def look(x: int, runtime: ToolRuntime) -> str:
        return ""

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    made = StructuredTool.from_function(look, name="look", description="", args_schema=schema)
    assert injections(made) == {"runtime": Injection("runtime")}


def test_a_hint_that_cannot_be_resolved_hides_no_other() -> None:
    def look(x: int, runtime: "ToolRuntime", odd: "Missing" = None) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    made = StructuredTool(name="look", description="", func=look, args_schema=schema)
    assert injections(made) == {"runtime": Injection("runtime")}


def test_each_injection_gets_its_value() -> None:
    store = InMemoryStore()
    within = context(state={"messages": [], "count": 3}, store=store)
    wanted = {
        "state": Injection("state"),
        "count": Injection("state", "count"),
        "call": Injection("call_id"),
        "store": Injection("store"),
        "runtime": Injection("runtime"),
    }
    values = injected(wanted, within, CONFIG)
    runtime = values.pop("runtime")
    assert values == {
        "state": {"messages": [], "count": 3},
        "count": 3,
        "call": "call-1",
        "store": store,
    }
    assert (runtime.tool_call_id, runtime.store, runtime.config) == ("call-1", store, CONFIG)
    assert runtime.state == {"messages": [], "count": 3}
    assert runtime.context is None
    runtime.stream_writer("goes nowhere outside of a graph")


@pytest.mark.parametrize(
    ("injection", "told"),
    [
        (Injection("state", "plan"), "the state's field 'plan'"),
        (Injection("store"), "give the agent one"),
        (Injection("unknown"), "injected parameter 'p'"),
    ],
)
def test_what_this_run_cannot_fill_is_an_error_unless_there_is_a_default(
    injection: Injection, told: str
) -> None:
    with pytest.raises(LookupError, match=told):
        injected({"p": injection}, context(), CONFIG)
    optional = Injection(injection.kind, injection.field, required=False)
    assert injected({"p": optional}, context(), CONFIG) == {}
