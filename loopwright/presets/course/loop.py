"""The course's entry (S0): a bounded run of a model and tools, told as the course tells it.

Every rule of the run is the core's; this pins its policies. What a run tells is translated in
`projection`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loopwright.background import require_loop
from loopwright.errors import ConfigurationError
from loopwright.presets.course.projection import AgentStream, CourseRun, Observer
from loopwright.presets.course.protocol import Model
from loopwright.presets.course.tools import NOT_FOUND, ToolRegistry, core_registry
from loopwright.presets.course.transcript import read
from loopwright.runs import Dependencies
from loopwright.settings import Limits, Settings
from loopwright.signals import AbortSignal
from loopwright.tools.arguments import ArgumentRules
from loopwright.wording import Wording

MAX_AGENT_STEPS = 64
LIMITS = Limits(
    turns=MAX_AGENT_STEPS,
    chunks=1024,
    text=65_536,
    blocks=1024,
    argument_depth=32,
    argument_values=257,
    argument_entries=256,
    argument_characters=4096,
    length_rounds=None,
    initial_messages=4096,
    result_characters=4096,
)
"""The course's bounds (S0-04, S0-10, S0-13, S0-17)."""

SETTINGS = Settings(
    model="course",
    protocol="strict",
    tool_execution="sequential",
    cancel_policy="cut",
    repair_policy="refuse",
    repetition="off",
    empty_answers="keep",
    retries=0,
    stall_timeout=None,
    limits=LIMITS,
)
"""The course's policies (S0-11 to S0-16, S0-22 to S0-24, S0-05; K1, K3)."""

WORDING = Wording(
    unknown_tool=NOT_FOUND.replace("{", "{{").replace("}", "}}"),
    truncated="\n[result cut to its limit]",
)


def run_agent_loop(
    *,
    messages: Sequence[Any],
    model: Model,
    tools: ToolRegistry,
    max_steps: int,
    signal: AbortSignal,
    request_sequence_start: int = 0,
    observer: Observer | None = None,
) -> AgentStream:
    """Run the loop: iterate what is returned for the events, await its `result()`.

    `messages` are those of `protocol` or their JSON forms. Raises ConfigurationError for an option
    that is wrong, before anything has begun; whatever happens later is an event and a result.
    `observer` is called with each event when it happens, before the run goes on. Must be called in
    an event loop.
    """
    settings = _settings(max_steps, request_sequence_start)
    _require_shapes(model, tools, signal)
    require_loop()
    offered = core_registry(ToolRegistry.snapshot(tools))
    transcript = read(messages, settings.limits)
    run = CourseRun(transcript, signal, max_steps, observer)
    if transcript.faults:
        run.refuse(())
        return run.stream
    dependencies = Dependencies(
        resolve=lambda name: run.provider,
        tools=offered,
        system_prompt="",
        settings=settings,
        wording=WORDING,
        argument_rules=ArgumentRules(coerce=False),
    )
    run.start(model, dependencies)
    return run.stream


def _settings(max_steps: Any, start: Any) -> Settings:
    """The course's settings for these steps. Raises ConfigurationError (S0-01, S0-02)."""
    if isinstance(max_steps, int) and max_steps > MAX_AGENT_STEPS:
        raise ConfigurationError(
            f"max_steps is {max_steps}: use a whole number from 1 to {MAX_AGENT_STEPS}",
            field="max_steps",
        )
    limits = replace(LIMITS, turns=max_steps)
    settings = replace(SETTINGS, limits=limits, request_offset=start)
    if start + max_steps > MAX_AGENT_STEPS:
        raise ConfigurationError(
            f"request_sequence_start is {start} with {max_steps} steps: the last request may be "
            f"number {MAX_AGENT_STEPS}",
            field="request_sequence_start",
        )
    return settings


def _require_shapes(model: Any, tools: Any, signal: Any) -> None:
    if not callable(getattr(model, "stream", None)):
        raise ConfigurationError(f"model is {model!r:.80}: it has no stream()", field="model")
    if not isinstance(tools, ToolRegistry):
        raise ConfigurationError(f"tools is {tools!r:.80}: use a ToolRegistry", field="tools")
    if not isinstance(signal, AbortSignal):
        raise ConfigurationError(f"signal is {signal!r:.80}: use an AbortSignal", field="signal")
