"""What is measured of a run."""

from collections.abc import Mapping
from typing import Any

from loopwright import Agent
from loopwright.settings import Settings
from loopwright.telemetry import metrics
from loopwright.telemetry.metrics import Measured
from loopwright.testing import Response, ScriptedModel, VirtualClock


class Seen:
    """Measurements as they came: kind, name, value, attributes."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, float, dict[str, Any]]] = []

    def count(self, name: str, value: int = 1, attributes: Mapping[str, Any] | None = None) -> None:
        self.taken.append(("count", name, value, dict(attributes or {})))

    def gauge(self, name: str, value: float, attributes: Mapping[str, Any] | None = None) -> None:
        self.taken.append(("gauge", name, value, dict(attributes or {})))

    def histogram(
        self, name: str, value: float, attributes: Mapping[str, Any] | None = None
    ) -> None:
        self.taken.append(("histogram", name, value, dict(attributes or {})))

    def of(self, name: str) -> list[tuple[float, dict[str, Any]]]:
        return [(value, about) for _, n, value, about in self.taken if n == name]


def fail() -> str:
    """Go wrong."""
    raise OSError("no")


USAGE = {"input_tokens": 3, "output_tokens": 4}
MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "scripted",
    "gen_ai.request.model": "scripted",
}


def test_runs_turns_tools_and_models_are_measured() -> None:
    seen = Seen()
    script = [
        Response(calls=[("c1", "fail", {})], usage=USAGE),
        Response(text="done", usage=USAGE),
    ]
    watch = Measured(seen, VirtualClock())
    with Agent(ScriptedModel(script), [fail], thread="t", observers=[watch]) as agent:
        agent.run("hi")
    thread = {"gen_ai.conversation.id": "t"}
    assert seen.of(metrics.ITERATION) == [(1, thread), (2, thread)]
    tool = {"gen_ai.tool.name": "fail"}
    assert seen.of(metrics.TOOL_CALLS) == [(1, {**tool, "error": True})]
    assert seen.of(metrics.TOOL_SECONDS) == [(0, tool)]
    assert seen.of(metrics.MODEL_SECONDS) == [(0, MODEL), (0, MODEL)]
    assert (
        seen.of(metrics.TOKENS)
        == [
            (3, {**MODEL, "gen_ai.token.type": "input"}),
            (4, {**MODEL, "gen_ai.token.type": "output"}),
        ]
        * 2
    )
    assert seen.of(metrics.COST) == []
    assert seen.of(metrics.RUNS) == [(1, {"status": "completed", "reason": "answered"})]
    assert seen.of(metrics.RUN_SECONDS) == [(0, {"status": "completed"})]


def test_a_failed_request_says_why() -> None:
    seen = Seen()
    model, once = ScriptedModel([ConnectionError("no route")]), Settings(retries=0)
    with Agent(model, observers=[Measured(seen)], settings=once) as agent:
        agent.run("hi")
    ((_, about),) = seen.of(metrics.MODEL_SECONDS)
    assert about == {**MODEL, "error.type": "network"}
    assert seen.of(metrics.RUNS) == [(1, {"status": "failed", "reason": "model_error"})]
