"""Suite `loop000_options`: what a bounded run may be built with, and that nothing begins if not."""

from collections.abc import Sequence
from typing import Any

from loopwright.errors import ConfigurationError
from loopwright.presets.course import ToolRegistry, run_agent_loop
from loopwright.signals import AbortSignal
from tests.conformance.course import ScriptedCourseModel
from tests.conformance.running import Case, difference, unknown_keys

TURN = {"final": {"content": [], "stopReason": "stop"}}
NAMES = {"maxSteps": "max_steps", "requestSequenceStart": "request_sequence_start"}


async def drive(case: Case) -> Sequence[str]:
    """Whether the call raises; if it does, before the model was asked for anything."""
    unknown = unknown_keys("input", case.input, [*NAMES, "model", "tools", "signal"])
    unknown += unknown_keys("expected", case.expect, ["ok"])
    if unknown:
        return unknown
    model = ScriptedCourseModel([TURN])
    options: dict[str, Any] = {"model": model, "tools": ToolRegistry(), "signal": AbortSignal()}
    given = {NAMES.get(name, name): value for name, value in case.input.items()}
    try:
        stream = run_agent_loop(messages=[], **{**options, **given})
    except ConfigurationError:
        reasons = difference("the requests of a refused run", len(model.requests), 0)
        return [*difference("ok", False, case.expect["ok"]), *reasons]
    result = await stream.result()
    return [
        *difference("ok", True, case.expect["ok"]),
        *difference("the status of the run", result.status, "completed"),
    ]
