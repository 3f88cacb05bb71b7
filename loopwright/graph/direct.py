"""How a node is called while no callback handler listens: as LangGraph does, without telling any.

LangGraph and langchain make a run of their own of every node, with a manager for each part of it,
and copy the whole state for the edge: an eighth of the time of a turn. With a listener (a tracer,
`astream_events`, a stream of langchain's messages) it is theirs to call the node.
"""

import asyncio
from collections.abc import AsyncIterator
from contextvars import copy_context
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph.state import CompiledStateGraph

from loopwright.graph.edges import settled

READ_KEY = "__pregel_read"
"""Where LangGraph's edges look in a config for what reads the state behind their node."""


def call_directly(graph: CompiledStateGraph[Any, Any, Any, Any], *names: str) -> None:
    """Let these nodes of a compiled graph, each one step with edges, be called directly."""
    for name in names:
        node = graph.nodes[name]
        told = node.node
        assert told is not None
        node.node = DirectNode(told, node.bound, node.flat_writers)


def listeners(config: RunnableConfig) -> list[BaseCallbackHandler]:
    """The callback handlers that hear of what is called with this config.

    Inside a graph they are those that the graph itself was called with: LangGraph has looked for
    tracers when the run began.
    """
    callbacks = config.get("callbacks") or []
    return callbacks if isinstance(callbacks, list) else callbacks.handlers


class DirectNode(Runnable[Any, Any]):
    """A node's step and its writers, behaving the same whether `told` has to tell listeners of them
    or not: in a task and a context of its own, under the config of the node.
    """

    def __init__(
        self,
        told: Runnable[Any, Any],
        step: Runnable[Any, Any],
        writers: list[Runnable[Any, Any]],
    ) -> None:
        self.name = told.name
        self._told, self._step, self._writers = told, step, writers

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        return self._told.invoke(input, config, **options)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Any:
        if config is None or listeners(config):
            return await self._told.ainvoke(input, config, **options)
        context = copy_context()
        context.run(var_child_runnable_config.set, config)
        step = self._step.ainvoke(input, config, **options)
        update = await asyncio.create_task(step, context=context)
        behind = settled(input, update)
        seen = {**config["configurable"], READ_KEY: lambda channels, fresh: behind}
        for writer in self._writers:
            await writer.ainvoke(update, {**config, "configurable": seen})
        return update

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        async for chunk in self._told.astream(input, config, **options):
            yield chunk
