"""Kind `arguments`: the arguments of one streamed call, as the server sends them, and its tool.

Which arguments the tool got, or what the model was told instead, is what counts.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from loopwright.state.messages import calls
from loopwright.testing import SseReply
from loopwright.testing.server import ScriptedReply
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, same, unknown_keys
from tests.conformance.streams import Streamed, error_mentions, play


async def drive(case: Case) -> Sequence[str]:
    """Stream the call to a run whose tool has the schema."""
    unknown = unknown_keys("input", case.input, ["raw_arguments", "schema"])
    if unknown:
        return unknown
    function = {"name": "t", "arguments": case.input["raw_arguments"]}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    script = SseReply(events=[_chunk({"tool_calls": [call]}, None), _chunk({}, "tool_calls")])
    replies: Iterator[ScriptedReply] = chain([script], repeat("Done."))
    return unmet(case.expect, await play(replies, {"t": case.input["schema"]}), ARGUMENTS)


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"id": "x1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def args(streamed: Streamed, wanted: dict[str, Any]) -> str | None:
    """The tool ran once, with these arguments."""
    ran = [arguments for _, _, arguments in streamed.ran]
    return None if same(ran, [wanted]) else f"it ran with {ran}"


def error(streamed: Streamed, wanted: bool) -> str | None:
    """The tool did not run, and the model was told so in an error; or the other way round."""
    failed = [result.status == "error" for result in streamed.first_results]
    return equal((failed, not streamed.ran), ([wanted], wanted))


def executed(streamed: Streamed, wanted: bool) -> str | None:
    """Whether the tool ran."""
    return equal(bool(streamed.ran), wanted)


def error_or_args(streamed: Streamed, accepted: list[dict[str, Any]]) -> str | None:
    """An error, or one of these arguments."""
    if streamed.ran:
        reasons = [args(streamed, wanted) for wanted in accepted]
        return None if None in reasons else str(reasons[0])
    return error(streamed, True) or equal(streamed.result.status, "completed")


def stored_text_is_valid_json(streamed: Streamed, wanted: bool) -> str | None:
    """What is stored of the call, and what the next request holds of it, is strict JSON."""
    json.dumps([call.arguments for call in calls(streamed.answers[0])], allow_nan=False)
    sent = [m for m in streamed.requests[-1]["messages"] if m.get("tool_calls")]
    texts = [c["function"]["arguments"] for m in sent for c in m["tool_calls"]]
    try:
        valid = all(isinstance(json.loads(text, parse_constant=_refuse), dict) for text in texts)
    except ValueError:
        valid = False
    return equal(bool(texts) and valid, wanted)


def _refuse(word: str) -> Any:
    raise ValueError(word)


ARGUMENTS: dict[str, Check] = {
    **PEOPLE,
    "args": args,
    "error": error,
    "error_mentions": error_mentions,
    "error_or_args": error_or_args,
    "executed": executed,
    "must_not": PEOPLE["must"],
    "stored_text_is_valid_json": stored_text_is_valid_json,
}
