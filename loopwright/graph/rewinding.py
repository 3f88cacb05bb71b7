"""Runs and updates that begin at an earlier checkpoint, as any caller of LangGraph may ask for.

They keep what `Agent.rewind` promises: queued messages that were delivered are not delivered again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import START
from langgraph.types import StateUpdate

from loopwright.graph.admission import COPY, INPUT
from loopwright.queues import head
from loopwright.state import past
from loopwright.state.log import Log

Saver = BaseCheckpointSaver[Any]
ID = "checkpoint_id"


async def rewound(saver: Saver | None, log: Log, config: RunnableConfig) -> RunnableConfig:
    """The config of a run on the newest checkpoint: the thread is rewound to the one it names.

    Raises UnknownMomentError and UnknownThreadError for one that is not stored.
    """
    if not saver or not await _is_earlier(saver, config):
        return config
    configurable = dict(config["configurable"])
    thread, id = str(configurable["thread_id"]), str(configurable.pop(ID))
    await asyncio.to_thread(_rewind, saver, log, thread, id)
    return {**config, "configurable": configurable}


def _rewind(saver: Saver, log: Log, thread: str, id: str) -> None:
    past.rewind(saver, thread, past.located(saver, thread, id), head(log, thread))


async def updated(
    saver: Saver | None, log: Log, config: RunnableConfig, steps: Sequence[Sequence[StateUpdate]]
) -> Sequence[Sequence[StateUpdate]]:
    """An update of the checkpoint that a config names: one of an earlier one moves the cursor."""
    if not saver or not steps or not steps[0] or not await _is_earlier(saver, config):
        return steps
    thread = str(config["configurable"]["thread_id"])
    cursor = await asyncio.to_thread(head, log, thread)
    (first, *others), *later = steps
    return [[_with_cursor(first, cursor), *others], *later]


def _with_cursor(update: StateUpdate, cursor: Any) -> StateUpdate:
    values: Any = update.values
    if update.as_node == COPY and isinstance(values, list) and values:
        first = _with_cursor(StateUpdate(*values[0][:2]), cursor)
        return update._replace(values=[first[:2], *values[1:]])  # type: ignore[arg-type]
    if isinstance(values, Mapping) and update.as_node not in (START, INPUT):
        return update._replace(values={**values, "cursor": cursor})
    return update


async def _is_earlier(saver: Saver, config: RunnableConfig) -> bool:
    """Whether a config names a checkpoint of a thread's own that is not its newest."""
    configurable = config.get("configurable", {})
    if not configurable.get(ID) or configurable.get("checkpoint_ns"):
        return False
    thread = {"thread_id": str(configurable["thread_id"]), "checkpoint_ns": ""}
    newest = await saver.aget_tuple({"configurable": thread})
    return newest is not None and newest.checkpoint["id"] != configurable[ID]
