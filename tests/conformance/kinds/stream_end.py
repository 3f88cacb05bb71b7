"""Kind `stream-end`: a stream of chunks that ends, well or not; then, or later, one that does."""

from collections.abc import Sequence
from typing import Any

from loopwright import Tool, ToolContext, ToolResult
from loopwright.testing import Drop, SseReply
from loopwright.testing.server import Reply
from tests.conformance.asking import LONG, Asked, ask
from tests.conformance.checks import Check, equal, unmet
from tests.conformance.failing import FAILURE
from tests.conformance.running import Case, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """Send the streams in turn; behind the last one a whole answer, or the last one for ever."""
    known = ["transport", "chunks", "done_marker", "attempts", "repeat_last_attempt"]
    unknown = unknown_keys("input", case.input, known)
    transport = case.input.get("transport", "openai-chat-sse")
    unknown += unknown_keys("transports", {transport: 0}, ["openai-chat-sse"])
    attempts = case.input.get("attempts", [case.input])
    for attempt in attempts if "attempts" in case.input else []:
        unknown += unknown_keys("an attempt", attempt, ["chunks", "done_marker", "then"])
        unknown += unknown_keys(
            "then", {attempt.get("then", "eof"): 0}, ["connection_reset", "eof"]
        )
    return unknown or await _unmet(case, [_stream(attempt) for attempt in attempts])


async def _unmet(case: Case, streams: list[SseReply]) -> Sequence[str]:
    executed: list[str] = []
    repeats, expect = bool(case.input.get("repeat_last_attempt")), dict(case.expect)
    usable = expect.pop("thread_usable_after", None)
    asked = await _asked(streams, repeats, executed)

    def executed_calls(outcome: Asked, ids: list[str]) -> str | None:
        return equal(executed, ids)

    checks: dict[str, Check] = {**FAILURE, "executed_calls": executed_calls}
    reasons = unmet(expect, asked, checks)
    if usable is not None:
        later = await _asked([], False, executed)
        reasons += unmet({"ends_with": "completed" if usable else "error"}, later, checks)
    return reasons


async def _asked(streams: list[SseReply], repeats: bool, executed: list[str]) -> Asked:
    def reply(number: int, body: dict[str, Any]) -> Reply:
        if repeats:
            return streams[min(number, len(streams) - 1)]
        return streams[number] if number < len(streams) else "Done."

    tools = [_tool(name, executed) for name in ("search", "write_file")]
    return await ask(reply, tools=tools, history=LONG)


def _stream(attempt: dict[str, Any]) -> SseReply:
    events: list[Any] = list(attempt["chunks"])
    if attempt.get("then") == "connection_reset":
        events.append(Drop())
    return SseReply(events=events, done=bool(attempt.get("done_marker")))


def _tool(name: str, executed: list[str]) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        executed.append(context.call_id)
        return ToolResult(content="done")

    return Tool(name=name, description=name, parameters={"type": "object"}, execute=execute)
