"""The termination rules: each edge is one look-up of what the node before it decided.

Edges only read. If someone edited the transcript since the decision, the edge decides from the
last message instead (design.md §2).
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Overwrite

from loopwright.errors import StateError
from loopwright.state.messages import calls
from loopwright.state.schema import AgentState

END: Literal["__end__"] = "__end__"
Target = TypeVar("Target", bound=str)


def after_load(state: AgentState) -> Literal["queue_drain", "fail", "__end__"]:
    """A run begins, or was refused."""
    return _route(
        state, {"opening": "queue_drain", "opening_polled": "queue_drain", "refused": END}
    )


def after_queue_drain(state: AgentState) -> Literal["model", "compact", "finish", "fail"]:
    """Another turn, room for it first, or nothing is left to do."""
    return _route(state, {"turn": "model", "compact": "compact", "idle": "finish"}, "turn")


def after_model(
    state: AgentState,
) -> Literal["tool_batch", "stop_hook", "compact", "finish", "fail"]:
    """Calls are answered whatever the stop reason says; everything else ends the turn. A request
    that was cut has no answer, and nothing to end but the run.
    """
    return _route(
        state,
        {
            "tools": "tool_batch",
            "satisfied": "stop_hook",
            "empty": "stop_hook",
            "cut": "stop_hook",
            "hard_stop": "stop_hook",
            "compact": "compact",
            "stopped": "finish",
        },
        "tools" if _has_calls(state) else "satisfied",
    )


def after_tool_batch(state: AgentState) -> Literal["stop_hook", "tool_batch", "fail"]:
    """Every batch ends its turn; one that runs in parts comes back until all calls have results."""
    return _route(
        state, {"again": "stop_hook", "satisfied": "stop_hook", "tools": "tool_batch"}, "again"
    )


def after_stop_hook(state: AgentState) -> Literal["queue_drain", "finish", "fail"]:
    """The run goes on unless a rule stopped it or the answer was a hard stop; whether an answer
    that was empty or cut off asks for another one was decided by `model`.
    """
    return _route(
        state,
        {
            "again": "queue_drain",
            "satisfied": "queue_drain",
            "empty": "queue_drain",
            "cut": "queue_drain",
            "hard_stop": "finish",
            "stopped": "finish",
        },
        "satisfied",
    )


def after_compact(state: AgentState) -> Literal["model", "finish", "fail"]:
    """The turn goes on with the smaller context, or no room could be made."""
    return _route(state, {"turn": "model", "stopped": "finish"}, "turn")


def after_finish(state: AgentState) -> Literal["fail", "__end__"]:
    """The run is over, unless a listener of its end failed."""
    return _route(state, {"done": END})


def settled(state: AgentState, update: Mapping[str, Any]) -> dict[str, Any]:
    """All that an edge reads behind a node that was given `state` and wrote `update`."""
    written: list[AnyMessage] | Overwrite = update.get("messages", [])
    if isinstance(written, Overwrite):
        messages = written.value
    else:
        messages = written or state.get("messages", [])
    return {"decision": update["decision"], "messages": messages[-1:]}


class Edge(Runnable[AgentState, str]):
    """An edge as LangGraph should call it: a plain function would hop through a thread, and a
    coroutine function would get a task and callbacks of its own."""

    def __init__(self, rule: Callable[[AgentState], str]) -> None:
        self.name = rule.__name__
        self._rule = rule

    def invoke(
        self, input: AgentState, config: RunnableConfig | None = None, **options: Any
    ) -> str:
        return self._rule(input)

    async def ainvoke(
        self, input: AgentState, config: RunnableConfig | None = None, **options: Any
    ) -> str:
        return self._rule(input)


def leading(rule: Callable[[AgentState], str]) -> tuple[Edge, list[str]]:
    """The edge of a rule and where it may lead, as its annotation says: for the graph's drawing."""
    return Edge(rule), list(get_args(get_type_hints(rule)["return"]))


def _route(
    state: AgentState, table: Mapping[str, Target], edited: str | None = None
) -> Target | Literal["fail"]:
    """The table's entry for the decision, `fail` for a fault.

    `edited` is the kind that holds when the decision is about another message than the last.
    Raises StateError for a kind that the table does not know: there is no silent default.
    """
    decision = state.get("decision")
    kind: str | None = None if decision is None else decision["kind"]
    if edited is not None and (decision is None or decision.get("about") != _tail_id(state)):
        kind = edited
    if kind == "fault":
        return "fail"
    if kind is None or kind not in table:
        raise StateError(f"no edge for decision {kind!r} here: known are {', '.join(table)}")
    return table[kind]


def _tail(state: AgentState) -> AnyMessage | None:
    messages = state.get("messages")
    return messages[-1] if messages else None


def _tail_id(state: AgentState) -> str | None:
    tail = _tail(state)
    return None if tail is None else tail.id


def _has_calls(state: AgentState) -> bool:
    tail = _tail(state)
    return tail is not None and bool(calls(tail))
