"""Models and tools of the course for tests, and what a run of them came to.

The suites of vectors script theirs from JSON: see `tests/conformance/course.py`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopwright.presets.course import (
    AgentEvent,
    AssistantMessage,
    EventStream,
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
    UserMessage,
    run_agent_loop,
)
from loopwright.signals import AbortSignal

Reached = Callable[[str], None]


@dataclass(frozen=True)
class Scripted:
    """One scripted answer: what is streamed is its content, block by block."""

    id: str
    content: Sequence[TextBlock | ToolCall]
    stop_reason: str


@dataclass
class ScriptedModel:
    """Answers in order, and what it was asked. `reached` is called at each point of an answer."""

    answers: list[Scripted]
    reached: Reached = lambda point: None
    requests: list[ModelRequest] = field(default_factory=list)

    @property
    def call_count(self) -> int:
        """How many requests it got."""
        return len(self.requests)

    def stream(self, request: ModelRequest, signal: AbortSignal) -> "_Stream":
        """Open the next answer."""
        self.requests.append(request)
        self.reached("open")
        return _Stream(self.answers.pop(0), request.id, self.reached)


@dataclass
class _Stream:
    answer: Scripted
    request_id: str
    reached: Reached

    async def __aiter__(self) -> AsyncIterator[TextDelta | ToolCallChunk]:
        for block in self.answer.content:
            self.reached("chunk")
            if isinstance(block, ToolCall):
                yield ToolCallChunk(self.request_id, block)
            else:
                yield TextDelta(self.request_id, block.text)

    async def result(self) -> ModelResponse:
        """The whole answer."""
        self.reached("final")
        answer = self.answer
        message = AssistantMessage(f"message-{answer.id}", tuple(answer.content))
        return ModelResponse(answer.id, self.request_id, message, answer.stop_reason, Usage(1, 1))


def user(content: str = "What is 20 + 22?") -> UserMessage:
    """A user message."""
    return UserMessage("user-001", content)


def call(name: str, id: str, arguments: dict[str, Any]) -> ToolCall:
    """A call."""
    return ToolCall(id, name, arguments)


def texts(id: str, text: str) -> Scripted:
    """An answer of text only."""
    return Scripted(id, [TextBlock(text)], "stop")


def calling(id: str, *calls: ToolCall) -> Scripted:
    """An answer of calls only."""
    return Scripted(id, list(calls), "toolCall")


def add_tool() -> Tool:
    """The sum of two numbers."""

    def add(value: Any, execution: ToolExecution) -> Any:
        return {"sum": value["left"] + value["right"]}

    return Tool("add", "Add two numbers.", add)


def echo_tool(executed: list[str], reached: Reached = lambda point: None) -> Tool:
    """Gives back what it is given, and notes which call it was."""

    async def echo(value: Any, execution: ToolExecution) -> Any:
        executed.append(execution.tool_call_id)
        reached("tool")
        return dict(value)

    return Tool("echo", "Give back the arguments.", echo)


async def settle_run(
    stream: EventStream[AgentEvent, RunResult],
) -> tuple[list[AgentEvent], RunResult]:
    """All events of a run and its result."""
    result = await stream.result()
    return [event async for event in stream], result


async def run(model: Any, *tools: Tool, **options: Any) -> tuple[list[AgentEvent], RunResult]:
    """Run the loop to its end on a user message, with two steps unless told otherwise."""
    defaults: dict[str, Any] = {
        "messages": [user()],
        "max_steps": 2,
        "signal": AbortSignal(),
        "tools": ToolRegistry(tools),
    }
    return await settle_run(run_agent_loop(model=model, **{**defaults, **options}))


def types(events: Sequence[AgentEvent]) -> list[str]:
    """The types of events in order."""
    return [event.type for event in events]
