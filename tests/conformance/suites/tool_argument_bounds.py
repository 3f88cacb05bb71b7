"""Suite `tool_argument_bounds`: a call with these arguments in a run, streamed and in the answer.

Which bounds were broken is asked of the function that the run asks.
"""

from collections.abc import Sequence

from loopwright.presets.course import LIMITS
from loopwright.tools.arguments import ArgumentRules, violations
from tests.conformance.course import play
from tests.conformance.running import Case, difference, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """Accepted: the tool runs. Refused: a protocol error before a chunk is told or a tool runs."""
    unknown = unknown_keys("input", case.input, ["arguments"])
    unknown += unknown_keys("expected", case.expect, ["accept", "violations"])
    if unknown:
        return unknown
    arguments = case.input["arguments"]
    call = {"type": "toolCall", "id": "c1", "name": "t", "arguments": arguments}
    played = await play(
        {
            "options": {"maxSteps": 1},
            "initial": [],
            "tools": {"t": {"kind": "ok"}},
            "turns": [
                {
                    "chunks": [{"type": "toolCall", "toolCall": call}],
                    "final": {"content": [call], "stopReason": "toolCall"},
                }
            ],
        }
    )
    accept = case.expect["accept"]
    code = None if played.result.error is None else played.result.error.code
    found = sorted(violations(arguments, ArgumentRules().within(LIMITS)))
    chunks = sum(event.type == "model.chunk" for event in played.events)
    return [
        *difference("the code", code, None if accept else "MODEL_PROTOCOL_ERROR"),
        *difference("the chunks", chunks, int(accept)),
        *difference("the calls that ran", played.tools.executed, ["c1"] if accept else []),
        *difference("violations", found, sorted(case.expect.get("violations", found))),
    ]
