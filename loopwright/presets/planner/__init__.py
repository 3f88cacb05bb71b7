"""The document's planner loop (S4): a JSON state, and `run_agent_loop` over three parts.

Its policies are in `loop`; the loop that runs is the core's graph.
"""

from loopwright.planning import plan_tool
from loopwright.presets.planner.executor import TOOL_TIMEOUT, Executor, Harness, ToolExecutor
from loopwright.presets.planner.loop import (
    MAX_ITERATIONS,
    SETTINGS,
    TOKEN_BUDGET,
    Deps,
    Planner,
    PlannerOutput,
    run_agent_loop,
)
from loopwright.presets.planner.observer import (
    CHECKPOINT_EVERY,
    Checkpoints,
    JsonLines,
    Metrics,
    Observer,
    Trace,
)
from loopwright.presets.planner.state import (
    SYSTEM_PROMPT,
    AgentState,
    ToolOutput,
    abort,
    create_initial_state,
    failed,
    is_error,
)

__all__ = [
    "CHECKPOINT_EVERY",
    "MAX_ITERATIONS",
    "SETTINGS",
    "SYSTEM_PROMPT",
    "TOKEN_BUDGET",
    "TOOL_TIMEOUT",
    "AgentState",
    "Checkpoints",
    "Deps",
    "Executor",
    "Harness",
    "JsonLines",
    "Metrics",
    "Observer",
    "Planner",
    "PlannerOutput",
    "ToolExecutor",
    "ToolOutput",
    "Trace",
    "abort",
    "create_initial_state",
    "failed",
    "is_error",
    "plan_tool",
    "run_agent_loop",
]
