"""What the core's run tells, in the course's words: events, transcript, result (S0-06 to S0-08,
S0-20, S0-21). Nothing here decides how a run goes on.
"""

import asyncio
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.errors import InputError
from loopwright.events import AgentStart, AnyEvent, MessageEnd, MessageUpdate, ToolExecutionStart
from loopwright.graph.assembly import build
from loopwright.ongoing import OngoingRun
from loopwright.outcome import RunResult as CoreResult
from loopwright.presets.course.model import STREAM, CourseProvider, course_message
from loopwright.presets.course.protocol import (
    AgentEvent,
    AssistantMessage,
    ErrorCode,
    EventType,
    Message,
    Model,
    RunError,
    RunResult,
    ToolCall,
    TranscriptFault,
    frozen,
    text_from_assistant,
)
from loopwright.presets.course.stream import EventStream
from loopwright.presets.course.transcript import Transcript
from loopwright.runs import Dependencies, Run
from loopwright.signals import AbortSignal
from loopwright.state.messages import error_of, new_id

AgentStream = EventStream[AgentEvent, RunResult]
Observer = Callable[[AgentEvent], None]

CANCELLED = "The run was cancelled"
"""The reason of a cancelled run whose signal gives none."""

_CODES: dict[str, ErrorCode] = {
    STREAM: "MODEL_STREAM_FAILED",
    "ProtocolError": "MODEL_PROTOCOL_ERROR",
    "FatalToolError": "TOOL_EXECUTION_FAILED",
}
"""The course's code for the kind of the error that ended the core's run."""


class CourseRun:
    """One run as the course sees it: a view of the core's run."""

    def __init__(
        self,
        transcript: Transcript,
        signal: AbortSignal,
        max_steps: int,
        observer: Observer | None = None,
    ) -> None:
        self.stream: AgentStream = EventStream()
        self._transcript = transcript
        self._messages: list[Message] = list(transcript.messages)
        self._signal = signal
        self._max_steps = max_steps
        self._observer = observer
        self._sequence = 0

    def start(self, model: Model, dependencies: Dependencies) -> None:
        """Start the core's run over the transcript. Needs a running event loop."""
        self.provider = CourseProvider(model, tuple(self._messages))
        graph = build(dependencies)
        lease = graph.leases.claim(new_id(), signal=self._signal)
        run = Run.start(lease=lease, dependencies=dependencies, views=[self])
        run.transcript = list(self._transcript.core)
        ongoing = OngoingRun(graph, run, {"messages": []}, lease.release)
        self._task = asyncio.create_task(self._settle(ongoing))

    def refuse(self, messages: Sequence[Message], why: str = "") -> None:
        """End the run on a transcript that it cannot begin with."""
        faults = self._transcript.all_faults or (TranscriptFault("INVALID_TRANSCRIPT", -1, why),)
        error = RunError("INVALID_TRANSCRIPT", faults[0].message, faults)
        self._finish(RunResult(status="failed", messages=tuple(messages), error=error))

    async def _settle(self, ongoing: OngoingRun) -> None:
        try:
            self._finish(self._result(await ongoing))
        except InputError as error:
            self.refuse(self._messages, str(error))
        except asyncio.CancelledError as error:
            self.stream.fail(error)
            raise
        except Exception as error:  # the outermost layer: what the runtime raises is a result
            self._finish(self._failed(self._code(), str(error) or type(error).__name__))

    def _code(self) -> ErrorCode:
        """Whether it was the caller's own signal that could not be read (S0-21)."""
        try:
            _ = self._signal.aborted, self._signal.reason
        except Exception:  # a signal of the caller's own making
            return "SIGNAL_ACCESS_FAILED"
        return "AGENT_RUNTIME_FAILED"

    # ---- what the core tells

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """The core begins with the transcript that it was given."""

    def apply(self, event: AnyEvent) -> None:
        """Tell what the course tells of an event of the core."""
        match event:
            case AgentStart():
                self._accept()
            case MessageUpdate(update="text_delta" | "tool_call_end"):
                self._tell("model.chunk", chunk=self.provider.chunk)
            case ToolExecutionStart():
                call = ToolCall(event.tool_call_id, event.tool_name, frozen(event.arguments))
                self._tell("tool.started", toolCall=call)
            case MessageEnd() if error_of(event.message) is None:
                self._append(event.message)
            case _:
                pass

    def _accept(self) -> None:
        for message in tuple(self._messages):
            if self._signal.aborted:
                return
            self._tell("message.accepted", message=message)

    def _append(self, told: AnyMessage) -> None:
        assert isinstance(told, AIMessage | ToolMessage)
        message = course_message(told)
        self._messages.append(message)
        if isinstance(told, ToolMessage):
            self._tell("tool.finished", message=message)

    def _tell(self, type: EventType, **payload: Any) -> None:
        event = AgentEvent(type, self._sequence, MappingProxyType(payload))
        self._sequence += 1
        self.stream.push(event)
        if self._observer is not None:
            self._observer(event)

    # ---- the end

    def _finish(self, result: RunResult) -> None:
        self._tell("run.finished", result=result)
        self.stream.finish(result)

    def _result(self, core: CoreResult) -> RunResult:
        messages = tuple(self._messages)
        if core.status == "completed":
            text = next(
                text_from_assistant(message)
                for message in reversed(messages)
                if isinstance(message, AssistantMessage)
            )
            return RunResult(status="completed", messages=messages, final_text=text)
        if core.status == "limit":
            return RunResult(status="maxSteps", messages=messages, max_steps=self._max_steps)
        if core.status == "cancelled":
            reason = reason_text(self._signal.reason)
            return RunResult(status="cancelled", messages=messages, reason=reason)
        error = core.error or {}
        code = _CODES.get(error.get("kind", ""), "AGENT_RUNTIME_FAILED")
        return self._failed(code, error.get("message", core.reason))

    def _failed(self, code: ErrorCode, text: str) -> RunResult:
        messages = tuple(self._messages)
        return RunResult(status="failed", messages=messages, error=RunError(code, text))


def reason_text(reason: object) -> str:
    """The reason of a cancel: the text that was given, else an exception's message (S0-22)."""
    text = str(reason) if isinstance(reason, str | BaseException) else ""
    return text or CANCELLED
