"""OpenTelemetry: spans of runs, turns, requests and tool calls, and the metrics of `metrics`.

Needs the extra `otel`. No content leaves the process this way: neither texts nor arguments.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import AIMessage

from loopwright.clock import Clock, SystemClock
from loopwright.errors import MissingExtraError
from loopwright.runs import Run
from loopwright.state.messages import stop_reason
from loopwright.telemetry.metrics import (
    Attributes,
    Meter,
    failure_attributes,
    model_attributes,
    tokens_of,
)
from loopwright.telemetry.recording import Recorder
from loopwright.telemetry.steps import Step, StepListener

try:
    from opentelemetry import context, metrics, trace
    from opentelemetry.trace import Span, SpanKind, StatusCode
except ImportError as error:
    raise MissingExtraError("OpenTelemetry", "otel") from error

NAME = "loopwright"
"""Of the instrumentation; spans are found under it."""

_FAILED = ("failed", "cut_off")


class OpenTelemetry:
    """An observer: `Agent(..., observers=[OpenTelemetry()])`.

    A run is a span `invoke_agent`, with a span for each turn below it, and below that one for each
    request (`chat MODEL`) and tool call (`execute_tool NAME`); a tool's own spans come below its
    call. Attributes follow the conventions for generative AI. Providers None are the global ones.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        self._metrics = OtelMetrics(meter_provider)
        self._clock = clock or SystemClock()

    def __call__(self, run: Run) -> None:
        """Follow a run that has not begun yet; its span is below the current one."""
        spans = RunSpans(self._tracer, context.get_current())
        Recorder.watch(run, [spans, Meter(self._metrics)], self._clock)


class RunSpans(StepListener):
    """The spans of one run."""

    def __init__(self, tracer: trace.Tracer, parent: context.Context) -> None:
        self._tracer, self._parent = tracer, parent
        self._spans: dict[int, Span] = {}
        self._run: Span | None = None
        self._turn: Span | None = None

    def begun(self, step: Step) -> None:
        above = {"run": None, "turn": self._run}.get(step.type, self._turn or self._run)
        span = self._tracer.start_span(
            _name(step),
            self._parent if above is None else trace.set_span_in_context(above, self._parent),
            kind=SpanKind.CLIENT if step.type == "model" else SpanKind.INTERNAL,
            attributes=_attributes(step),
            start_time=_nanoseconds(step.began),
        )
        self._spans[id(step)] = span
        if step.type == "run":
            self._run = span
        elif step.type == "turn":
            self._turn = span

    def ended(self, step: Step) -> None:
        span = self._spans.pop(id(step), None)
        if span is None:
            self._moment(step)
            return
        failed = _failure(step)
        for name, value in {**_results(step), **failed}.items():
            span.set_attribute(name, value)
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(step.over))
        if span is self._turn:
            self._turn = None

    def _moment(self, step: Step) -> None:
        above = self._turn or self._run
        if above is not None and step.type != "message":
            numbers = {n: v for n, v in step.data.items() if isinstance(v, int | float)}
            above.add_event(f"{NAME}.{step.type}", numbers, _nanoseconds(step.over))

    @contextmanager
    def within(self, step: Step) -> Iterator[None]:
        span = self._spans.get(id(step))
        if span is None:
            yield
            return
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)


class OtelMetrics:
    """`metrics.Metrics` over OpenTelemetry's instruments, which are made at first use."""

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        self._meter = metrics.get_meter(NAME, meter_provider=provider)
        self._instruments: dict[str, Any] = {}

    def count(self, name: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add to a counter."""
        self._instrument(name, self._meter.create_counter).add(value, attributes)

    def gauge(self, name: str, value: float, attributes: Attributes | None = None) -> None:
        """Note what a value is now."""
        self._instrument(name, self._meter.create_gauge).set(value, attributes)

    def histogram(self, name: str, value: float, attributes: Attributes | None = None) -> None:
        """Add one value to a distribution."""
        self._instrument(name, self._meter.create_histogram).record(value, attributes)

    def _instrument(self, name: str, create: Any) -> Any:
        if name not in self._instruments:
            ends = (unit for end, unit in _UNITS.items() if name.endswith(end))
            self._instruments[name] = create(name, unit=next(ends, ""))
        return self._instruments[name]


_UNITS = {".duration": "s", "token.usage": "{token}", ".cost": "USD"}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _name(step: Step) -> str:
    match step.type:
        case "run":
            return "invoke_agent"
        case "model":
            return f"chat {step.data['model']}"
        case "tool":
            return f"execute_tool {step.data['name']}"
        case _:
            return f"turn {step.turn}"


def _attributes(step: Step) -> dict[str, Any]:
    """What is known when a step begins."""
    match step.type:
        case "run":
            return {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": NAME,
                "gen_ai.conversation.id": step.thread,
                "loopwright.run.id": step.run,
            }
        case "model":
            conversation = {"gen_ai.conversation.id": step.thread}
            return {**model_attributes(step), **conversation, "gen_ai.request.stream": True}
        case "tool":
            return {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": step.data["name"],
                "gen_ai.tool.call.id": step.data["call"],
                "gen_ai.tool.type": "function",
            }
        case _:
            return {"loopwright.turn": step.turn}


def _results(step: Step) -> Mapping[str, Any]:
    """What is known when it has ended."""
    if step.type == "run":
        usage = step.data.get("usage") or {}
        told = {f"gen_ai.usage.{name}": usage[name] for name in _USAGE if name in usage}
        status, reason = step.data["status"], step.data["reason"]
        return {"loopwright.status": status, "loopwright.reason": reason, **told}
    answer = step.data.get("answer")
    if not isinstance(answer, AIMessage):
        return {}
    model = answer.response_metadata.get("model_name") or answer.response_metadata.get("model")
    told = {
        "gen_ai.response.id": answer.id,
        "gen_ai.response.model": model,
        "gen_ai.response.time_to_first_chunk": step.data.get("first_piece"),
        **{f"gen_ai.usage.{type}_tokens": count for type, count in tokens_of(step).items()},
    }
    known = {name: value for name, value in told.items() if value is not None}
    return {**known, "gen_ai.response.finish_reasons": [stop_reason(answer)]}


_USAGE = ("input_tokens", "output_tokens")


def _failure(step: Step) -> dict[str, str]:
    if step.type == "run":
        failed = step.data["status"] in _FAILED
        return {"error.type": str(step.data["reason"])} if failed else {}
    return failure_attributes(step) if step.type != "turn" else {}
