"""Graphs over a scripted provider, and what a run of one tells.

Agents are built by the tests themselves: their constructor is part of what is tested.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from loopwright.events import AgentEnd, AnyEvent
from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.outcome import RunResult, result_of
from loopwright.runs import Dependencies
from loopwright.tools.registry import registry
from tests.support.providers import Scripted, ScriptedProvider

Saver = BaseCheckpointSaver[Any]


@dataclass(frozen=True)
class Rig:
    """A graph with the provider that plays its script."""

    graph: AgentGraph
    provider: ScriptedProvider

    async def run(self, given: Any, thread: str = "t", **options: Any) -> RunResult:
        """The outcome of one run."""
        return outcome(await self.events(given, thread, **options))

    async def events(self, given: Any, thread: str = "t", **options: Any) -> list[AnyEvent]:
        """What one run tells."""
        stream = self.graph.astream(given, on(thread), stream_mode="custom", **options)
        return [event async for event in stream]

    async def ledger(self, thread: str = "t") -> list[AnyMessage]:
        """The stored transcript."""
        state = await self.graph.aget_state(on(thread))
        return list(state.values.get("messages", []))


def rig(
    *script: Scripted,
    tools: Iterable[Any] = (),
    window: int | None = None,
    checkpointer: Saver | None = None,
    **dependencies: Any,
) -> Rig:
    """A graph over this script; its transcript is kept in memory unless a checkpointer is given."""
    provider = ScriptedProvider(*script, window=window)
    parts = Dependencies(resolve=lambda name: provider, tools=registry(tools), **dependencies)
    return Rig(build(parts, checkpointer=checkpointer or InMemorySaver()), provider)


def on(thread: str, **config: Any) -> Any:
    """The config that names a thread."""
    return {"configurable": {"thread_id": thread}, **config}


def outcome(events: list[AnyEvent]) -> RunResult:
    """The result that the last event tells."""
    assert isinstance(events[-1], AgentEnd)
    return result_of(events[-1])


def told(events: Iterable[AnyEvent]) -> list[str]:
    """Events as words: their type, and whose message or which call it is about."""
    return [" ".join([event.type, *_about(event)]) for event in events]


def _about(event: Any) -> list[str]:
    if event.type in ("message_start", "message_end"):
        return [{"human": "user", "ai": "assistant"}.get(event.message.type, event.message.type)]
    if event.type == "message_update":
        return [event.update]
    if event.type.startswith("tool_execution"):
        return [event.tool_call_id]
    return []


def outline(messages: Iterable[AnyMessage]) -> list[str]:
    """Messages as words: `user: hi`, `assistant: text [c1 c2]`, `c1: result`."""
    return [_line(message) for message in messages]


def _line(message: AnyMessage) -> str:
    if isinstance(message, ToolMessage):
        return f"{message.tool_call_id}: {message.text}"
    role = "user" if message.type == "human" else message.type
    if not isinstance(message, AIMessage):
        return f"{role}: {message.text}"
    calls = [str(call["id"]) for call in [*message.tool_calls, *message.invalid_tool_calls]]
    return f"assistant: {message.text}" + (f" [{' '.join(calls)}]" if calls else "")
