"""What the suites of the bounded loop script: models and tools of the course from a case's JSON.

What is expected of a run is the suites' own; here is what it is given, and where it is cancelled.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from loopwright.presets.course import (
    AgentEvent,
    AssistantMessage,
    FatalToolError,
    Invalid,
    ModelRequest,
    ModelResponse,
    RunResult,
    TextBlock,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallChunk,
    ToolExecution,
    ToolRegistry,
    Usage,
    Valid,
    run_agent_loop,
)
from loopwright.signals import AbortSignal

POINTS = {
    "before_run": (),
    "model_open": ("step",),
    "after_chunk": ("step", "index"),
    "awaiting_final": ("step",),
    "after_final": ("step",),
    "tool_start": ("call",),
    "tool_validate": ("call",),
    "tool_running": ("call",),
    "after_tool_finished": ("call",),
}
"""The points at which a case may cancel its run, and what of a case says which one is meant."""

KINDS = ("ok", "raise", "fatal", "invalid_args", "validate_raises", "unserializable")


@dataclass
class Cancel:
    """Sets the signal at the point that a case names; a case without one never."""

    abort: dict[str, Any] | None = None
    signal: AbortSignal = field(default_factory=AbortSignal)
    call: str = ""
    """The call that was started last."""

    def reached(self, point: str, **about: Any) -> bool:
        """Whether the run is cancelled at this point; it is from now on."""
        if self.abort is None or self.abort["point"] != point:
            return False
        defaults = {"step": 1, "index": 0, "call": about.get("call")}
        if any(self.abort.get(name, defaults[name]) != about[name] for name in POINTS[point]):
            return False
        self.signal.abort(**reason_of(self.abort))
        return True

    def observe(self, event: AgentEvent) -> None:
        """Follow the events: tools do not say themselves that they begin and end."""
        if event.type == "tool.started":
            self.call = event.payload["toolCall"].id
            self.reached("tool_start", call=self.call)
        elif event.type == "tool.finished":
            self.reached("after_tool_finished", call=event.payload["message"].tool_call_id)


@dataclass
class ScriptedCourseModel:
    """Answers its n-th request with the n-th turn, and records the requests."""

    turns: list[dict[str, Any]]
    cancel: Cancel = field(default_factory=Cancel)
    requests: list[ModelRequest] = field(default_factory=list)

    def stream(self, request: ModelRequest, signal: AbortSignal) -> "_Answer":
        """Open the answer of this turn."""
        self.requests.append(request)
        step = len(self.requests)
        turn = self.turns[step - 1]
        self.cancel.reached("model_open", step=step)
        if turn.get("fail", {}).get("at") == "open":
            raise RuntimeError(turn["fail"]["message"])
        return _Answer(turn, step, request.id, self.cancel)


@dataclass
class _Answer:
    turn: dict[str, Any]
    step: int
    request_id: str
    cancel: Cancel

    async def __aiter__(self) -> AsyncIterator[Any]:
        fail = self.turn.get("fail", {})
        at = fail.get("after", 0) if fail.get("at") == "iterate" else None
        chunks = self.turn.get("chunks", [])
        for index, chunk in enumerate(chunks):
            if index == at:
                raise RuntimeError(fail["message"])
            yield self._chunk(chunk)
            if self.cancel.reached("after_chunk", step=self.step, index=index):
                await asyncio.Event().wait()
        if at is not None and at >= len(chunks):
            raise RuntimeError(fail["message"])

    def _chunk(self, given: Any) -> Any:
        kind = given.get("type") if isinstance(given, dict) else None
        if kind == "textDelta":
            return TextDelta(given.get("requestId", self.request_id), given.get("delta"))
        if kind == "toolCall":
            request_id = given.get("requestId", self.request_id)
            return ToolCallChunk(request_id, block(given.get("toolCall")))
        return given

    async def result(self) -> Any:
        """The final answer."""
        if self.turn.get("fail", {}).get("at") == "final":
            raise RuntimeError(self.turn["fail"]["message"])
        if self.cancel.reached("awaiting_final", step=self.step):
            await asyncio.Event().wait()
        self.cancel.reached("after_final", step=self.step)
        final = self.turn["final"]
        if not isinstance(final, dict):
            return final
        id = final.get("id", f"resp-{self.step}")
        content = final["content"]
        return ModelResponse(
            id,
            final.get("requestId", self.request_id),
            AssistantMessage(
                f"message-{id}",
                [block(item) for item in content] if isinstance(content, list) else content,
            ),
            final["stopReason"],
            usage_of(final.get("usage", {"inputTokens": 1, "outputTokens": 1})),
        )


def reason_of(abort: dict[str, Any]) -> dict[str, Any]:
    """The reason of a cancel as it is given to a signal: a text, an error, or none."""
    reason = abort.get("reason")
    if isinstance(reason, dict):
        return {"reason": RuntimeError(reason.get("message", ""))}
    return {} if reason is None else {"reason": reason}


def usage_of(given: Any) -> Any:
    """The tokens of an answer; what names them otherwise is left for the run to refuse."""
    if not isinstance(given, dict) or set(given) != {"inputTokens", "outputTokens"}:
        return given
    return Usage(given["inputTokens"], given["outputTokens"])


def block(given: Any) -> Any:
    """A block of an answer; what is none is left as it is, for the run to refuse."""
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "text":
        return TextBlock(given.get("text"))
    if kind == "toolCall":
        return ToolCall(given.get("id"), given.get("name"), given.get("arguments"))
    return given


@dataclass
class ScriptedTools:
    """Tools by kind, and the calls that have entered the body of one."""

    kinds: dict[str, dict[str, Any]]
    cancel: Cancel = field(default_factory=Cancel)
    executed: list[str] = field(default_factory=list)

    def registry(self) -> ToolRegistry:
        """All of them. Raises ValueError for a kind that is unknown."""
        unknown = {kind["kind"] for kind in self.kinds.values()} - set(KINDS)
        if unknown:
            raise ValueError(f"unknown kind of tool {min(unknown)!r}")
        return ToolRegistry([self._tool(name, kind["kind"]) for name, kind in self.kinds.items()])

    def _tool(self, name: str, kind: str) -> Tool:
        def validate(arguments: Any) -> Valid | Invalid:
            self.cancel.reached("tool_validate", call=self.cancel.call)
            if kind == "validate_raises":
                raise RuntimeError("the validator failed")
            return Invalid("not these") if kind == "invalid_args" else Valid(arguments)

        async def execute(value: Any, execution: ToolExecution) -> Any:
            self.executed.append(execution.tool_call_id)
            cancelled = self.cancel.reached("tool_running", call=execution.tool_call_id)
            if kind == "fatal":
                raise FatalToolError("beyond repair")
            if cancelled:
                await asyncio.Event().wait()
            if kind == "raise":
                raise RuntimeError("the tool failed")
            return object() if kind == "unserializable" else {"ok": True}

        return Tool(name, f"A tool of kind {kind}.", execute, validate)


@dataclass
class Played:
    """A run that is over: what it told, what it came to, and what it did to model and tools."""

    events: list[AgentEvent]
    result: RunResult
    model: ScriptedCourseModel
    tools: ScriptedTools


async def play(given: dict[str, Any]) -> Played:
    """Run the loop on a case of `loop000_runs`."""
    cancel = Cancel(given.get("abort"))
    model = ScriptedCourseModel(given.get("turns", []), cancel)
    tools = ScriptedTools(given.get("tools", {}), cancel)
    options = given.get("options", {})
    cancel.reached("before_run")
    stream = run_agent_loop(
        messages=given["initial"],
        model=model,
        tools=tools.registry(),
        max_steps=options["maxSteps"],
        signal=cancel.signal,
        observer=cancel.observe,
        **(
            {"request_sequence_start": options["requestSequenceStart"]}
            if "requestSequenceStart" in options
            else {}
        ),
    )
    result = await stream.result()
    return Played([event async for event in stream], result, model, tools)
