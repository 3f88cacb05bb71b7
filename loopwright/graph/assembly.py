"""The graph of a run on one screen: its nodes, then its edges.

What a node does is in `nodes/`, where an edge leads in `edges`, how a caller gets in in `entrance`.
"""

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from loopwright.graph import edges
from loopwright.graph.direct import call_directly
from loopwright.graph.edges import leading
from loopwright.graph.entrance import AgentGraph
from loopwright.graph.guard import guarded, unguarded
from loopwright.nodes.compact import compact
from loopwright.nodes.fail import fail
from loopwright.nodes.finish import finish
from loopwright.nodes.load import load
from loopwright.nodes.model import model
from loopwright.nodes.queue_drain import queue_drain
from loopwright.nodes.stop_hook import stop_hook
from loopwright.nodes.tool_batch import tool_batch
from loopwright.runs import Dependencies
from loopwright.state.lease import Leases
from loopwright.state.schema import AgentOutput, AgentState, EntranceInput, Overrides
from loopwright.state.storage import leases_for


def build(
    dependencies: Dependencies,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    leases: Leases | None = None,
) -> AgentGraph:
    """The compiled graph over these dependencies; without a checkpointer nothing is kept.

    `leases` None takes those of the checkpointer's file, if it is ours, else some of its own.
    """
    graph = StateGraph(
        AgentState, context_schema=Overrides, input_schema=EntranceInput, output_schema=AgentOutput
    )
    graph.add_node("load", guarded(load))
    graph.add_node("queue_drain", guarded(queue_drain))
    graph.add_node("model", guarded(model))
    graph.add_node("tool_batch", guarded(tool_batch))
    graph.add_node("stop_hook", guarded(stop_hook))
    graph.add_node("compact", guarded(compact))
    graph.add_node("finish", guarded(finish))
    graph.add_node("fail", unguarded(fail))

    graph.add_edge(START, "load")
    graph.add_conditional_edges("load", *leading(edges.after_load))
    graph.add_conditional_edges("queue_drain", *leading(edges.after_queue_drain))
    graph.add_conditional_edges("model", *leading(edges.after_model))
    graph.add_conditional_edges("tool_batch", *leading(edges.after_tool_batch))
    graph.add_conditional_edges("stop_hook", *leading(edges.after_stop_hook))
    graph.add_conditional_edges("compact", *leading(edges.after_compact))
    graph.add_conditional_edges("finish", *leading(edges.after_finish))
    graph.add_edge("fail", END)

    compiled = graph.compile(checkpointer=checkpointer, store=store, name="loopwright")
    call_directly(compiled, *graph.nodes)
    return AgentGraph.over(compiled, dependencies, leases or leases_for(checkpointer))
