"""Every edge: each kind of its table, faults, unknown kinds, and transcripts that were edited."""

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest
from langchain_core.messages import AnyMessage, HumanMessage

from loopwright.errors import StateError
from loopwright.graph import edges
from loopwright.state.schema import AgentState, DecisionKind
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig
from tests.support.providers import said
from tests.support.states import state

Edge = Callable[[AgentState], str]

TABLE: dict[Edge, dict[str, str]] = {
    edges.after_load: {
        "opening": "queue_drain",
        "opening_polled": "queue_drain",
        "refused": "__end__",
    },
    edges.after_queue_drain: {"turn": "model", "compact": "compact", "idle": "finish"},
    edges.after_model: {
        "tools": "tool_batch",
        "satisfied": "stop_hook",
        "empty": "stop_hook",
        "cut": "stop_hook",
        "hard_stop": "stop_hook",
        "compact": "compact",
        "stopped": "finish",
    },
    edges.after_tool_batch: {
        "again": "stop_hook",
        "satisfied": "stop_hook",
        "tools": "tool_batch",
    },
    edges.after_stop_hook: {
        "again": "queue_drain",
        "satisfied": "queue_drain",
        "empty": "queue_drain",
        "cut": "queue_drain",
        "hard_stop": "finish",
        "stopped": "finish",
    },
    edges.after_compact: {"turn": "model", "stopped": "finish"},
    edges.after_finish: {"done": "__end__"},
}
ROUTES = [(edge, kind, target) for edge, table in TABLE.items() for kind, target in table.items()]
LEDGER: list[AnyMessage] = [user("u"), answer("a")]


def name(value: Any) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("edge", "kind", "target"), ROUTES, ids=name)
def test_a_decision_leads_where_the_table_says(edge: Edge, kind: str, target: str) -> None:
    assert edge(state(LEDGER, kind)) == target
    assert edge(state([], kind)) == target


@pytest.mark.parametrize("edge", TABLE, ids=name)
def test_a_fault_leads_to_the_end_of_all_faults(edge: Edge) -> None:
    assert edge(state(LEDGER, "fault")) == "fail"


@pytest.mark.parametrize("edge", TABLE, ids=name)
def test_a_kind_that_is_not_in_the_table_is_an_error(edge: Edge) -> None:
    for kind in {"nonsense", *get_args(DecisionKind)} - {*TABLE[edge], "fault"}:
        with pytest.raises(StateError, match=f"no edge for decision '{kind}'"):
            edge(state(LEDGER, kind))


@pytest.mark.parametrize("edge", [edges.after_load, edges.after_finish], ids=name)
def test_no_decision_at_all_is_an_error(edge: Edge) -> None:
    with pytest.raises(StateError, match="no edge for decision None"):
        edge(AgentState(messages=[]))  # type: ignore[typeddict-item]


@pytest.mark.anyio
async def test_langgraph_gets_an_edge_with_its_targets_for_both_faces() -> None:
    edge, targets = edges.leading(edges.after_queue_drain)
    assert edge.get_name() == "after_queue_drain"
    assert targets == ["model", "compact", "finish", "fail"]
    assert edge.invoke(state(LEDGER, "idle")) == "finish"
    assert await edge.ainvoke(state(LEDGER, "turn")) == "model"


@pytest.mark.parametrize("edge", TABLE, ids=name)
def test_an_edge_is_annotated_with_all_its_targets(edge: Edge) -> None:
    targets = get_args(get_type_hints(edge)["return"])
    assert set(targets) == {*TABLE[edge].values(), "fail"}


@pytest.mark.parametrize(
    ("edge", "added", "target"),
    [
        (edges.after_queue_drain, user("new"), "model"),
        (edges.after_model, answer("new", "c1"), "tool_batch"),
        (edges.after_model, answer("new"), "stop_hook"),
        (edges.after_tool_batch, result("new", "c1"), "stop_hook"),
        (edges.after_stop_hook, answer("new"), "queue_drain"),
        (edges.after_compact, user("new"), "model"),
    ],
    ids=name,
)
@pytest.mark.parametrize("kind", ["done", "hard_stop", "stopped"])
def test_an_edited_transcript_decides_from_its_last_message(
    edge: Edge, added: AnyMessage, target: str, kind: str
) -> None:
    edited = state(LEDGER, kind)
    edited["messages"] = [*LEDGER, added]
    assert edge(edited) == target


@pytest.mark.anyio
async def test_calls_that_were_put_into_the_transcript_are_executed_on_resume() -> None:
    made = rig("done", "after the edit", tools=[look])
    await made.run({"messages": "hi"})
    await made.graph.aupdate_state(
        on("t"), {"messages": [said("I look.", ("c1", "look", {}))]}, as_node="model"
    )
    assert (await made.graph.aget_state(on("t"))).next == ("tool_batch",)
    ended = await made.run(None)
    assert (ended.status, ended.reason) == ("completed", "answered")
    assert outline(await made.ledger())[2:] == [
        "assistant: I look. [c1]",
        "c1: seen",
        "assistant: after the edit",
    ]


@pytest.mark.anyio
async def test_an_answer_that_was_put_into_the_transcript_ends_the_run_on_resume() -> None:
    made = rig("done")
    await made.run({"messages": "hi"})
    await made.graph.aupdate_state(on("t"), {"messages": [said("edited")]}, as_node="model")
    ended = await made.run(None)
    assert (ended.status, ended.reason, ended.final_text) == ("completed", "answered", "edited")


@pytest.mark.anyio
async def test_a_question_that_was_put_into_the_transcript_is_answered_on_resume() -> None:
    made = rig("done", "because")
    await made.run({"messages": "hi"})
    await made.graph.aupdate_state(
        on("t"), {"messages": [HumanMessage("why?")]}, as_node="stop_hook"
    )
    assert (await made.run(None)).final_text == "because"


def look() -> str:
    """Look."""
    return "seen"
