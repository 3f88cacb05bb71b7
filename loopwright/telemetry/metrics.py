"""Measurements of runs: a small interface, and what is measured.

OpenTelemetry's implementation is in `otel`. Names and units of models' measurements are those of
its conventions for generative AI; ours begin with `loopwright.`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from langchain_core.messages import AIMessage

from loopwright.clock import Clock, SystemClock
from loopwright.runs import Run
from loopwright.spending import cost_of
from loopwright.telemetry.recording import Recorder
from loopwright.telemetry.steps import Step, StepListener

RUNS = "loopwright.runs"
"""Counter of ended runs, by status and reason."""

ITERATION = "loopwright.run.turn"
"""Gauge: the turn that a run is in, by thread (S4-08)."""

RUN_SECONDS = "loopwright.run.duration"
"""Histogram of seconds from a run's beginning to its end, by status."""

TOOL_CALLS = "loopwright.tool.calls"
"""Counter of answered tool calls, by tool and whether the answer is an error."""

TOOL_SECONDS = "loopwright.tool.duration"
"""Histogram of seconds from a call to its answer, by tool."""

MODEL_SECONDS = "gen_ai.client.operation.duration"
"""Histogram of seconds from a request to the end of its answer."""

TOKENS = "gen_ai.client.token.usage"
"""Histogram of the tokens of a request, by type: input and output."""

COST = "loopwright.model.cost"
"""Histogram of the US dollars that a request has cost, where that is known."""

Attributes = Mapping[str, str | bool | int]


class Metrics(Protocol):
    """Takes measurements; must not block."""

    def count(self, name: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add to a counter, which only grows."""
        ...

    def gauge(self, name: str, value: float, attributes: Attributes | None = None) -> None:
        """Note what a value is now."""
        ...

    def histogram(self, name: str, value: float, attributes: Attributes | None = None) -> None:
        """Add one value to a distribution."""
        ...


class Measured:
    """An observer that measures runs: `Agent(..., observers=[Measured(metrics)])`."""

    def __init__(self, metrics: Metrics, clock: Clock | None = None) -> None:
        self._metrics, self._clock = metrics, clock or SystemClock()

    def __call__(self, run: Run) -> None:
        """Follow a run that has not begun yet."""
        Recorder.watch(run, [Meter(self._metrics)], self._clock)


class Meter(StepListener):
    """Measures the steps of one run."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def begun(self, step: Step) -> None:
        if step.type == "turn":
            self._metrics.gauge(ITERATION, step.turn, {"gen_ai.conversation.id": step.thread})

    def ended(self, step: Step) -> None:
        measure = {"run": self._run, "tool": self._tool, "model": self._model}.get(step.type)
        if measure is not None:
            measure(step)

    def _run(self, step: Step) -> None:
        status = {"status": step.data["status"]}
        self._metrics.count(RUNS, 1, {**status, "reason": step.data["reason"]})
        self._metrics.histogram(RUN_SECONDS, step.seconds, status)

    def _tool(self, step: Step) -> None:
        tool = {"gen_ai.tool.name": step.data["name"]}
        if "content" in step.data:
            self._metrics.count(TOOL_CALLS, 1, {**tool, "error": bool(step.data["is_error"])})
        self._metrics.histogram(TOOL_SECONDS, step.seconds, tool)

    def _model(self, step: Step) -> None:
        about = model_attributes(step)
        failed = {name: value for name, value in failure_attributes(step).items() if value}
        self._metrics.histogram(MODEL_SECONDS, step.seconds, {**about, **failed})
        for type, tokens in tokens_of(step).items():
            self._metrics.histogram(TOKENS, tokens, {**about, "gen_ai.token.type": type})
        answer = step.data.get("answer")
        cost = cost_of(answer) if isinstance(answer, AIMessage) else None
        if cost is not None:
            self._metrics.histogram(COST, cost, about)


def model_attributes(step: Step) -> dict[str, str]:
    """What identifies the model of a request."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": str(step.data["provider"]),
        "gen_ai.request.model": str(step.data["model"]),
    }


def failure_attributes(step: Step) -> dict[str, str]:
    """Why a request or a call failed; empty if it did not."""
    answer: Any = step.data.get("answer")
    error = step.data.get("error")
    if isinstance(answer, AIMessage) and answer.response_metadata.get("error_message"):
        return {"error.type": str(answer.response_metadata.get("error_kind", "unknown"))}
    if error:
        return {"error.type": str(error["kind"])}
    return {"error.type": "tool_error"} if step.data.get("is_error") else {}


def tokens_of(step: Step) -> dict[str, int]:
    """Tokens of a request by type, as far as its provider has counted them."""
    answer = step.data.get("answer")
    usage = answer.usage_metadata if isinstance(answer, AIMessage) else None
    if usage is None:
        return {}
    return {"input": usage["input_tokens"], "output": usage["output_tokens"]}
