"""The recording subscriber: each event as the traces show it, and the triggers that wait for it.

How a message is shown is `shorthand`'s; what a trigger does is the host's.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from loopwright.events import (
    AgentEnd,
    AgentStart,
    AnyEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from loopwright.live import LiveState
from tests.conformance.pi.shorthand import Json, parts, role_of, simplified
from tests.conformance.pi.world import Scripted, World, units

QUEUES = {"steering": "steering", "follow_up": "followUp"}


class Recorder:
    """Writes events into a world's trace. `public` is the agent's state, None in a raw loop."""

    def __init__(self, world: World, public: LiveState | None) -> None:
        self._world = world
        self._public = public
        self._followed = LiveState()
        """What a raw loop's consumer makes of the pieces of a message."""

        self._turn = 0

    async def hear(self, event: AnyEvent) -> None:
        """Take one event: record it, then do what the scenario says about it."""
        if (event.run_id, event.sequence) in self._world.seams:
            return
        if self._public is None:
            self._followed.apply(event)
        if isinstance(event, QueueUpdate):
            self._delivered(event)
            return
        self._count(event)
        shown = self._shown(event)
        self._world.events.append(shown)
        self._world.log.append(_mark(shown))
        await self._world.fire("event", shown["type"], **self._attributes(shown))

    def _count(self, event: AnyEvent) -> None:
        if isinstance(event, AgentStart):
            self._turn = 0
        elif isinstance(event, TurnStart):
            self._turn += 1

    def _delivered(self, event: QueueUpdate) -> None:
        """Put the count into the line of the last poll, which has found something."""
        if self._public is None:
            return  # the caller's own queues have logged it
        line, log = f"poll:{QUEUES[event.queue]}", self._world.log
        polls = [at for at, said in enumerate(log) if said.startswith(line)]
        assert polls and log[polls[-1]] == f"{line}:0", "a delivery without a poll"
        log[polls[-1]] = f"{line}:{event.delivered}"

    def _shown(self, event: AnyEvent) -> Json:
        shown = {"type": event.type, **self._body(event)}
        return shown if self._public is None else {**shown, "state": public_state(self._public)}

    def _body(self, event: AnyEvent) -> Json:
        match event:
            case AgentEnd():
                roles = [role_of(message) for message in event.messages]
                return {"messages": len(roles), "roles": roles}
            case TurnEnd():
                results = [result.tool_call_id for result in event.tool_results]
                return {"message": simplified(event.message), "toolResults": results}
            case MessageStart() | MessageEnd():
                return {"message": simplified(event.message)}
            case MessageUpdate():
                return self._update(event)
            case ToolExecutionStart() | ToolExecutionUpdate() | ToolExecutionEnd():
                return _tool_event(event)
        return {}

    def _update(self, event: MessageUpdate) -> Json:
        message = (self._public or self._followed).streaming_message
        assert message is not None, "a piece of a message that has not begun"
        shown = {"message": simplified(message), "update": event.update.replace("tool_", "tool")}
        return {**shown, "delta": event.delta} if event.update.endswith("_delta") else shown

    def _attributes(self, shown: Json) -> Json:
        """What the filters of a trigger look at."""
        return {
            "role": shown.get("message", {}).get("role"),
            "id": _id(shown),
            "turn": self._turn,
            "update": shown.get("update"),
        }


def _tool_event(event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> Json:
    shown: Json = {"toolCallId": event.tool_call_id, "toolName": event.tool_name}
    if not isinstance(event, ToolExecutionEnd):
        shown["args"] = event.arguments
    if isinstance(event, ToolExecutionUpdate):
        return {**shown, **_with_text(event.partial["content"])}
    if isinstance(event, ToolExecutionEnd):
        shown |= {**_with_text(event.content), "isError": event.is_error}
        if event.terminate is not None:
            shown["terminate"] = event.terminate
    return shown


def _with_text(content: Any) -> Json:
    return {"text": None, **parts(content)}


def _id(shown: Json) -> Any:
    return shown.get("toolCallId") or shown.get("message", {}).get("toolCallId")


def _mark(shown: Json) -> str:
    """The event's line in the log."""
    role = shown.get("message", {}).get("role")
    named = (shown["type"], role, _id(shown), shown.get("update"))
    return ":".join(["event", *(part for part in named if part)])


def public_state(state: LiveState) -> Json:
    """An agent's public state as it is shown with each event."""
    streaming = state.streaming_message
    return {
        "messages": len(state.messages),
        "isStreaming": state.is_streaming,
        "streaming": None if streaming is None else role_of(streaming),
        "pending": sorted(state.pending_tool_calls),
        "error": state.error_message,
    }


class ExtraListener:
    """A further subscriber of the scenario: it logs, waits or raises, as its spec says."""

    def __init__(self, world: World, spec: Json) -> None:
        self._world, self._spec = world, spec

    async def hear(self, event: AnyEvent) -> None:
        """Take one event, if it is one of those that this listener is for."""
        is_ours = not isinstance(event, QueueUpdate) and event.type in self._spec.get(
            "only", [event.type]
        )
        if not is_ours or (event.run_id, event.sequence) in self._world.seams:
            return
        await self._take(f"listener:{self._spec['id']}:{event.type}")

    async def _take(self, line: str) -> None:
        logs = self._spec.get("log")
        if logs:
            self._world.log.append(line)
        if "delay" in self._spec:
            await units(self._spec["delay"])
            if logs:
                self._world.log.append(f"{line}:done")
        if "throw" in self._spec:
            raise Scripted(self._spec["throw"])


def texts(messages: Sequence[AnyMessage]) -> list[str]:
    """The texts of messages, as the traces list what is left in a queue."""
    return [simplified(message).get("text", "") for message in messages]
