"""The course's bounded agent loop (S0): `run_agent_loop`, and the course's own words.

Its policies are in `loop`; the loop that runs is the core's graph.
"""

from loopwright.errors import FatalToolError
from loopwright.presets.course.loop import LIMITS, MAX_AGENT_STEPS, SETTINGS, run_agent_loop
from loopwright.presets.course.protocol import (
    AgentEvent,
    AssistantMessage,
    ModelRequest,
    ModelResponse,
    RunError,
    RunResult,
    TextBlock,
    TextDelta,
    ToolCall,
    ToolCallChunk,
    ToolResultMessage,
    TranscriptFault,
    Usage,
    UserMessage,
    text_from_assistant,
    to_json,
)
from loopwright.presets.course.stream import EventStream
from loopwright.presets.course.tools import Invalid, Tool, ToolExecution, ToolRegistry, Valid

__all__ = [
    "LIMITS",
    "MAX_AGENT_STEPS",
    "SETTINGS",
    "AgentEvent",
    "AssistantMessage",
    "EventStream",
    "FatalToolError",
    "Invalid",
    "ModelRequest",
    "ModelResponse",
    "RunError",
    "RunResult",
    "TextBlock",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolCallChunk",
    "ToolExecution",
    "ToolRegistry",
    "ToolResultMessage",
    "TranscriptFault",
    "Usage",
    "UserMessage",
    "Valid",
    "run_agent_loop",
    "text_from_assistant",
    "to_json",
]
