"""The document's observer: a gauge, a trace and a checkpoint every third iteration (S4-08).

What is stored of every step, so that a killed run goes on, is the core's.
"""

import json
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from loopwright.presets.planner.state import AgentState

CHECKPOINT_EVERY = 3
"""Iterations from one exported state to the next (K22)."""


class Metrics(Protocol):
    """Takes measurements."""

    def gauge(self, name: str, value: float) -> None:
        """Note a value under a name."""
        ...


class Trace(Protocol):
    """Takes records of steps."""

    def emit(self, record: dict[str, Any]) -> None:
        """Note a record of JSON values."""
        ...


class Checkpoints(Protocol):
    """Takes states of sessions."""

    def save(self, session_id: str, state: AgentState) -> None:
        """Keep a state; it is not changed afterwards."""
        ...


class JsonLines:
    """A trace as text, one record a line, for jq and its like."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def emit(self, record: dict[str, Any]) -> None:
        """Write the record and flush, so that a killed process loses no line."""
        self._stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._stream.flush()


@dataclass(frozen=True, kw_only=True)
class Observer:
    """Called with the state behind every executed batch; what it returns is the state from then on.

    Each part may be missing.
    """

    metrics: Metrics | None = None
    trace: Trace | None = None
    checkpoint: Checkpoints | None = None
    every: int = CHECKPOINT_EVERY

    def __call__(self, state: AgentState) -> AgentState:
        """Measure, trace, and export every third state."""
        if self.metrics is not None:
            self.metrics.gauge("agent.iteration", state["iteration"])
        if self.trace is not None:
            self.trace.emit(
                {
                    "sessionId": state["sessionId"],
                    "step": state["iteration"],
                    "toolCount": len(state["toolResults"]),
                }
            )
        if self.checkpoint is not None and state["iteration"] % self.every == 0:
            self.checkpoint.save(state["sessionId"], state)
        return state
