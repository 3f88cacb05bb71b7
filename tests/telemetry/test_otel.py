"""OpenTelemetry's spans and metrics of a run, as an exporter gets them."""

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

from loopwright import Agent, Settings
from loopwright.settings import Limits
from loopwright.telemetry import metrics
from loopwright.telemetry.otel import OpenTelemetry
from loopwright.testing import Response, ScriptedModel

USAGE = {"input_tokens": 3, "output_tokens": 4}
BOTH = Response(calls=[("c1", "look", {}), ("c2", "fail", {})])


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exported: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exported))
    return made


def spans(exported: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    found = exported.get_finished_spans()
    assert len({span.name for span in found}) == len(found)
    return {span.name: span for span in found}


def parent(exported: InMemorySpanExporter, span: ReadableSpan) -> str | None:
    ids = {one.context.span_id: one.name for one in exported.get_finished_spans()}
    return None if span.parent is None else ids[span.parent.span_id]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_a_tree_of_spans(exported: InMemorySpanExporter, provider: TracerProvider) -> None:
    tracer = trace.get_tracer("tools", tracer_provider=provider)

    async def look() -> str:
        """Look."""
        with tracer.start_as_current_span("inside"):
            return "seen"

    def fail() -> str:
        """Go wrong."""
        raise OSError("no")

    model = ScriptedModel([BOTH, Response(text="done", usage=USAGE)], model_name="m")
    watch = OpenTelemetry(provider)
    with Agent(model, [look, fail], thread="t", observers=[watch]) as agent:
        limits = Settings(limits=Limits(turns=1))
        agent.settings = Settings.from_json({**limits.to_json(), "model": agent.model})
        agent.run("hi")
    found = spans(exported)
    above = {name: parent(exported, span) for name, span in found.items()}
    assert above == {
        "invoke_agent": None,
        "turn 1": "invoke_agent",
        "chat m": "turn 1",
        "execute_tool look": "turn 1",
        "execute_tool fail": "turn 1",
        "inside": "execute_tool look",
    }
    assert found["chat m"].kind is SpanKind.CLIENT
    for name, outer in above.items():
        if outer is not None:
            inner, around = found[name], found[outer]
            assert inner.start_time is not None and around.start_time is not None
            assert around.start_time <= inner.start_time
    run = attributes(found["invoke_agent"])
    assert (run["loopwright.status"], run["loopwright.reason"]) == ("limit", "max_turns")
    failed = found["execute_tool fail"]
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "tool_error"


def test_attributes_are_named_as_the_conventions_name_them(
    exported: InMemorySpanExporter, provider: TracerProvider
) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel(
        [Response(calls=[("c1", "look", {})], usage=USAGE), Response(text="ok", usage=USAGE)]
    )
    with Agent(model, [look], thread="t", observers=[OpenTelemetry(provider)]) as agent:
        agent.run("hi")
    by_operation: dict[str, dict[str, Any]] = {}
    for span in exported.get_finished_spans():
        told = attributes(span)
        by_operation[str(told.get(names.GEN_AI_OPERATION_NAME))] = told
    chat, tool, run = (by_operation[n] for n in ("chat", "execute_tool", "invoke_agent"))
    assert chat[names.GEN_AI_PROVIDER_NAME] == chat[names.GEN_AI_REQUEST_MODEL] == "scripted"
    assert chat[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)
    assert (chat[names.GEN_AI_USAGE_INPUT_TOKENS], chat[names.GEN_AI_USAGE_OUTPUT_TOKENS]) == (3, 4)
    assert chat[names.GEN_AI_CONVERSATION_ID] == run[names.GEN_AI_CONVERSATION_ID] == "t"
    assert names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK in chat
    assert (tool[names.GEN_AI_TOOL_NAME], tool[names.GEN_AI_TOOL_CALL_ID]) == ("look", "c1")
    assert tool[names.GEN_AI_TOOL_TYPE] == "function"
    assert run[names.GEN_AI_USAGE_INPUT_TOKENS] == 6
    known = {value for name, value in vars(names).items() if name.startswith("GEN_AI")}
    used = {name for told in by_operation.values() for name in told if name.startswith("gen_ai")}
    assert used <= known
    assert metrics.MODEL_SECONDS == gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION
    assert metrics.TOKENS == gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE


def test_no_content_is_sent(exported: InMemorySpanExporter, provider: TracerProvider) -> None:
    with Agent(ScriptedModel(["a secret"]), observers=[OpenTelemetry(provider)]) as agent:
        agent.run("what is it?")
    told = "".join(span.to_json() for span in exported.get_finished_spans())
    assert "secret" not in told and "what is it" not in told


def test_the_run_is_below_the_caller_s_span(
    exported: InMemorySpanExporter, provider: TracerProvider
) -> None:
    tracer = trace.get_tracer("caller", tracer_provider=provider)
    with Agent(ScriptedModel(["ok"]), observers=[OpenTelemetry(provider)]) as agent:
        with tracer.start_as_current_span("request"):
            agent.run("hi")
    assert parent(exported, spans(exported)["invoke_agent"]) == "request"


def test_metrics_are_recorded_with_their_units() -> None:
    reader = InMemoryMetricReader()
    watch = OpenTelemetry(meter_provider=MeterProvider([reader]))
    with Agent(ScriptedModel([Response(text="ok", usage=USAGE)]), observers=[watch]) as agent:
        agent.run("hi")
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        m.name: m.unit for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics
    }
    assert found == {
        metrics.RUNS: "",
        metrics.RUN_SECONDS: "s",
        metrics.ITERATION: "",
        metrics.MODEL_SECONDS: "s",
        metrics.TOKENS: "{token}",
    }


def test_without_the_extra_it_is_said_what_to_install() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from loopwright.errors import MissingExtraError\n"
        "try:\n    import loopwright.telemetry.otel\n"
        "except MissingExtraError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    told = "OpenTelemetry needs the extra 'otel': pip install 'loopwright[otel]'"
    assert (run.stdout.strip(), run.stderr) == (told, "")
