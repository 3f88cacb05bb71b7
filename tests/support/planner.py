"""Planners and tools of the planner preset for tests: scripts by iteration, and parts that note.

The suite of vectors scripts its own: see `tests/conformance/suites/planner_loop.py`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loopwright.presets.planner import AgentState, PlannerOutput

Script = list[Any]
"""For each iteration a text, or a list of calls `(name, arguments)`; text arguments stay text."""


def planner(script: Script, tokens: int = 100) -> Callable[[AgentState], PlannerOutput]:
    """A function of the state alone, so a session may go on with it from any of its states."""

    def plan(state: AgentState) -> PlannerOutput:
        at = state["iteration"]
        item = script[at]
        if isinstance(item, str):
            message: dict[str, Any] = {"role": "assistant", "content": item}
        else:
            message = {"role": "assistant", "content": "", "tool_calls": calls(at, item)}
        return PlannerOutput(message=message, usage={"totalTokens": tokens})

    return plan


def calls(at: int, made: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Calls in the document's form; `call-2-0` is the first of the third iteration."""
    return [
        {
            "id": f"call-{at}-{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for number, (name, arguments) in enumerate(made)
    ]


@dataclass
class Noted:
    """Metrics, trace and checkpoints in lists; a state is kept as text, as a database would."""

    gauges: list[tuple[str, float]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def gauge(self, name: str, value: float) -> None:
        self.gauges.append((name, value))

    def emit(self, record: dict[str, Any]) -> None:
        self.records.append(record)

    def save(self, session_id: str, state: AgentState) -> None:
        self.states.append(json.dumps(state))

    def load(self, at: int = -1) -> AgentState:
        """A kept state."""
        state: AgentState = json.loads(self.states[at])
        return state


@dataclass
class Echo:
    """An executor that gives the arguments back and notes the calls."""

    executed: list[str] = field(default_factory=list)

    async def execute(self, call: dict[str, Any], ctx: Any) -> Any:
        self.executed.append(call["id"])
        return {"of": json.loads(call["function"]["arguments"]), "in": ctx["sessionId"]}
