"""Nodes that are called directly: nobody can tell it from LangGraph's own way, and who listens is
told as ever."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AnyMessage
from langgraph.config import get_config
from langgraph.types import Command, Overwrite, interrupt

from loopwright.errors import StateError
from loopwright.graph import direct, edges
from loopwright.hooks import BeforeToolCall, Hooks
from loopwright.state.schema import AgentState, append
from tests.graph.test_edges import TABLE, name
from tests.ledgers import answer, result, unhurried, user
from tests.support.graphs import Rig, on, outline, rig, told
from tests.support.providers import said
from tests.support.states import state

CALL = said("", ("c1", "look", {}))


class Ear(AsyncCallbackHandler):
    """A handler that keeps the names of what was begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def on_chain_start(self, *given: Any, name: str = "", **options: Any) -> None:
        self.begun.append(name)


def look() -> str:
    """Look."""
    return "seen"


def ask() -> str:
    """Ask."""
    return str(interrupt("sure?"))


def broken(*given: Any) -> None:
    raise RuntimeError("broken")


STORIES: dict[str, tuple[Callable[[], Rig], list[Any]]] = {
    "an answer": (lambda: rig("hello"), [{"messages": "hi"}]),
    "a call": (lambda: rig(CALL, "done", tools=[look]), [{"messages": "hi"}]),
    "two runs": (lambda: rig(CALL, "done", "again", tools=[look]), [{"messages": "hi"}] * 2),
    "a question": (
        lambda: rig(said("", ("c1", "ask", {})), "done", tools=[ask]),
        [{"messages": "hi"}, Command(resume="yes")],
    ),
    "a fault": (
        lambda: rig(CALL, tools=[look], hooks=Hooks(should_stop_after_turn=broken)),
        [{"messages": "hi"}],
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("story", STORIES)
async def test_with_a_listener_and_without_the_same_is_told_and_stored(story: str) -> None:
    make, inputs = STORIES[story]
    alone = await played(make(), inputs, [])
    assert alone == await played(make(), inputs, [Ear()])
    assert len(alone) > 5


async def played(made: Rig, inputs: Iterable[Any], handlers: list[Any]) -> list[Any]:
    """All that the runs of these inputs told and left behind, but for ids and times."""
    events: list[Any] = []
    for one in inputs:
        stream = made.graph.astream(one, on("t", callbacks=handlers), stream_mode="custom")
        events += told([event async for event in stream])
    history = [item async for item in made.graph.aget_state_history(on("t"))]
    return events + [
        (
            snapshot.next,
            snapshot.metadata and (snapshot.metadata["source"], snapshot.metadata["step"]),
            outline(snapshot.values.get("messages", [])),
            snapshot.values.get("decision", {}).get("kind"),
            sorted(snapshot.values),
        )
        for snapshot in history
    ]


@pytest.mark.anyio
async def test_a_listener_hears_of_every_node_and_nothing_is_called_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[Any] = []

    def settled(*given: Any) -> Any:
        called.append(given)
        return edges.settled(*given)

    monkeypatch.setattr(direct, "settled", settled)
    made, ear = rig(CALL, "done", "alone", tools=[look]), Ear()
    await made.graph.ainvoke({"messages": "hi"}, on("t", callbacks=[ear]))
    nodes = ["queue_drain", "model", "tool_batch", "stop_hook"]
    assert [begun for begun in ear.begun if begun in made.graph.nodes] == [
        *["load", *nodes],
        *["queue_drain", "model", "stop_hook", "queue_drain", "finish"],
    ]
    assert not called
    await made.graph.ainvoke({"messages": "hi"}, on("t"))
    assert len(called) == len(["load", "queue_drain", "model", "stop_hook", "drain", "finish"])


@pytest.mark.anyio
@pytest.mark.parametrize("handlers", [[], [Ear()]], ids=["alone", "heard"])
async def test_a_tool_sees_the_config_of_its_node_and_a_node_s_context_ends_with_it(
    handlers: list[Any],
) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen: list[Any] = []

    def before(context: Any) -> BeforeToolCall | None:
        seen.append(variable.get())
        variable.set("by the hook")
        return None

    async def inspect() -> str:
        """Inspect."""
        config = get_config()
        seen.append((config["metadata"]["langgraph_node"], config["configurable"]["thread_id"]))
        return variable.get()

    call = said("", ("c1", "inspect", {}))
    again = said("", ("c2", "inspect", {}))
    made = rig(call, again, "done", tools=[inspect], hooks=Hooks(before_tool_call=before))
    await made.graph.ainvoke({"messages": "hi"}, on("t", callbacks=handlers))
    assert seen == ["unset", ("tool_batch", "t")] * 2
    assert "c1: by the hook" in outline(await made.ledger())


def channels(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    kinds = [kind for table in TABLE.values() for kind in table]
    decision = st.fixed_dictionaries(
        {"kind": st.sampled_from([*kinds, "fault"]), "about": st.sampled_from(["m1", "m2", None])}
    )
    return st.fixed_dictionaries({"decision": decision}, optional={"messages": messages})


MESSAGES = st.lists(
    st.sampled_from([user("m1"), answer("m2"), answer("m3", "c1"), result("m4", "c1")]), max_size=3
)


@pytest.mark.parametrize("edge", TABLE, ids=name)
@given(
    before=MESSAGES,
    update=channels(MESSAGES | MESSAGES.map(Overwrite)),
)
@unhurried
def test_an_edge_leads_from_what_it_is_shown_where_it_leads_from_the_whole_state(
    edge: Callable[[AgentState], str], before: list[AnyMessage], update: dict[str, Any]
) -> None:
    behind = {**state(before), **update, "messages": after(before, update.get("messages", []))}
    assert led(edge, edges.settled(state(before), update)) == led(edge, behind)


def after(before: list[AnyMessage], written: Any) -> list[AnyMessage]:
    return written.value if isinstance(written, Overwrite) else append(before, written)


def led(edge: Callable[[AgentState], str], seen: Any) -> str:
    try:
        return edge(seen)
    except StateError as error:
        return str(error)
