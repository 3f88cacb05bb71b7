"""Streams of cases through a real run: the real HTTP server, langchain-openai's client, an agent.

What a case expects of its run stands here too, one named check for each key; a driver of a kind
says how its inputs become replies.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright import Agent, RunResult, Settings, Tool, ToolContext, ToolResult
from loopwright.events import AnyEvent, Retry
from loopwright.settings import Environment
from loopwright.state.messages import ERROR, calls, error_of, stop_reason
from loopwright.testing import Drop, OpenAIServer, RawReply, SseReply
from loopwright.testing.server import ScriptedReply
from tests.conformance.checks import PEOPLE, Check, equal

MODEL = "custom/test-model"
RETRYABLE = {"rate_limit", "timeout", "connection", "server", "protocol"}
"""The kinds of failures that another attempt may put right."""


@dataclass
class Streamed:
    """What a run made of the replies that the server had for it."""

    result: RunResult
    ledger: list[AnyMessage]
    events: list[AnyEvent]
    requests: list[Any]
    """The JSON bodies that the server got, in order."""

    ran: list[tuple[str, str, Any]] = field(default_factory=list)
    """Id, name and arguments of each call that was executed."""

    @property
    def answers(self) -> list[AIMessage]:
        """The answers in the ledger."""
        return [message for message in self.ledger if isinstance(message, AIMessage)]

    @property
    def retries(self) -> int:
        """How often a request was sent again."""
        return sum(isinstance(event, Retry) for event in self.events)

    @property
    def first_results(self) -> list[ToolMessage]:
        """The results of the first answer's calls."""
        made = {call.id for call in calls(self.answers[0])} if self.answers else set()
        results = [m for m in self.ledger if isinstance(m, ToolMessage)]
        return [result for result in results if result.tool_call_id in made]


async def play(
    replies: Iterable[ScriptedReply],
    tools: Mapping[str, dict[str, Any]] | Iterable[str] = (),
    settings: Settings | None = None,
) -> Streamed:
    """One prompt to an agent whose model's server has these replies.

    `tools` are names, or names with the schemas of their parameters.
    """
    schemas = tools if isinstance(tools, Mapping) else {n: {"type": "object"} for n in tools}
    events: list[AnyEvent] = []
    ran: list[tuple[str, str, Any]] = []
    with OpenAIServer(replies) as server:
        environment = Environment(base_url=server.base_url, api_key="key")  # type: ignore[arg-type]
        async with Agent(
            MODEL,
            [_tool(name, schema, ran) for name, schema in schemas.items()],
            settings=settings,
            environment=environment,
        ) as agent:
            agent.subscribe(events.append)
            result = await agent.prompt("Go.")
            ledger = agent.messages()
        return Streamed(result, ledger, events, [r.body for r in server.requests], ran)


def _tool(name: str, schema: dict[str, Any], ran: list[tuple[str, str, Any]]) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append((context.call_id, name, arguments))
        return ToolResult(content="ran")

    return Tool(name=name, description=f"The tool {name}.", parameters=schema, execute=execute)


# ---- inputs

TRANSPORT_KEYS = (
    *("transport", "chunks", "done_marker", "network_reads_b64"),
    *("attempts", "repeat_last_attempt", "repeat_turns"),
)


def replies_of(given: Mapping[str, Any]) -> list[ScriptedReply]:
    """The server's replies that an input describes, one for each request."""
    if "attempts" in given:
        return [_reply(attempt) for attempt in given["attempts"]]
    return [_reply(given)] * given.get("repeat_turns", 1)


def followed_by(replies: Sequence[ScriptedReply], given: Mapping[str, Any]) -> Iterator[Any]:
    """The replies, then what a server has for all later requests: the last one again if the input
    says so, else a plain answer.
    """
    return chain(replies, repeat(replies[-1] if given.get("repeat_last_attempt") else "Done."))


def _reply(given: Mapping[str, Any]) -> ScriptedReply:
    if given.get("transport") == "raw-http-body" or "network_reads_b64" in given:
        return RawReply(writes=[base64.b64decode(read) for read in given["network_reads_b64"]])
    end = {None: [], "connection_reset": [Drop()], "connection_closed": [Drop(reset=False)]}
    events = [*given["chunks"], *end[given.get("then")]]
    return SseReply(events=events, done=given.get("done_marker", False))


def names_in(value: Any) -> set[str]:
    """The names of functions anywhere in the chunks of an input, and in what is expected."""
    if isinstance(value, list):
        return set().union(*map(names_in, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    own = value.get("name")
    found = {own} if isinstance(own, str) and own else set()
    return found | names_in(list(value.values()))


# ---- what is expected


def content(streamed: Streamed, wanted: str) -> str | None:
    """The text of the first answer."""
    return equal(str(streamed.answers[0].text), wanted)


def complete(streamed: Streamed, wanted: bool) -> str | None:
    """Whether the first stream was taken for a whole answer: nothing failed, nothing sent again."""
    whole = not streamed.retries and stop_reason(streamed.answers[0]) != ERROR
    return equal(whole, wanted)


def tool_calls(streamed: Streamed, wanted: list[dict[str, Any]]) -> str | None:
    """The calls of the first answer that may run, all of which ran, and no others."""
    made = streamed.answers[0].tool_calls
    rows = [{"id": c["id"], "name": c["name"], "args": c["args"]} for c in made]
    ids = [str(row["id"]) for row in rows]
    if len(set(ids)) != len(ids) or not all(ids):
        return f"the ids are {ids}"
    if ran_otherwise := [c for c in ids if c not in {id for id, _, _ in streamed.ran}]:
        return f"{ran_otherwise} did not run"
    if len(rows) != len(wanted):
        return f"is {rows}"
    free = ("*nonempty_unique",)
    seen = [
        {**row, "id": want["id"] if want["id"] in free else row["id"]}
        for row, want in zip(rows, wanted, strict=True)
    ]
    return equal(json.dumps(seen, sort_keys=True), json.dumps(wanted, sort_keys=True))


def invalid_tool_calls(streamed: Streamed, wanted: int) -> str | None:
    """How many calls of the first answer must not run; each has an error as its result."""
    broken = [call.id for call in calls(streamed.answers[0]) if call.error]
    told = [r.tool_call_id for r in streamed.first_results if r.status == "error"]
    return equal(len(broken), wanted) or equal([id for id in broken if id not in told], [])


def must_not_execute(streamed: Streamed, wanted: bool) -> str | None:
    """No call was executed."""
    return equal(not streamed.ran, wanted)


def usage(streamed: Streamed, wanted: dict[str, int]) -> str | None:
    """The token counts of the first answer."""
    counts: Any = streamed.answers[0].usage_metadata or {}
    found = {
        "input": counts.get("input_tokens"),
        "output": counts.get("output_tokens"),
        "total": counts.get("total_tokens"),
        "cached": counts.get("input_token_details", {}).get("cache_read", 0),
        "reasoning": counts.get("output_token_details", {}).get("reasoning", 0),
    }
    return equal({name: found[name] for name in wanted}, wanted)


def failure_class(streamed: Streamed, wanted: str) -> str | None:
    """What kind of failure the first attempt came to; the user never sees a raw exception."""
    if streamed.retries:
        return equal("retryable", wanted)
    found = error_of(streamed.answers[0]) or streamed.result.error or {}
    kind = found.get("kind", "")
    known = "retryable" if kind in RETRYABLE else "non_retryable"
    return equal("context_overflow" if kind == "context_overflow" else known, wanted)


def executed_calls(streamed: Streamed, wanted: list[str]) -> str | None:
    """The ids of the calls that were executed."""
    return equal([id for id, _, _ in streamed.ran], wanted)


def answered_with_error(streamed: Streamed, wanted: list[str]) -> str | None:
    """The calls of the first answer that have an error as their result."""
    results = streamed.first_results
    return equal([r.tool_call_id for r in results if r.status == "error"], wanted)


def error_mentions(streamed: Streamed, pattern: str) -> str | None:
    """The error results of the first answer say this."""
    texts = [str(r.content) for r in streamed.first_results if r.status == "error"]
    said = texts and all(re.search(pattern, text, re.IGNORECASE) for text in texts)
    return None if said else f"the results are {texts}"


def max_model_calls(streamed: Streamed, wanted: int) -> str | None:
    """At most this many requests were sent."""
    sent = len(streamed.requests)
    return None if sent <= wanted else f"{sent} requests"


def model_calls(streamed: Streamed, wanted: int) -> str | None:
    """So many requests were sent."""
    return equal(len(streamed.requests), wanted)


def no_exception(streamed: Streamed, wanted: bool) -> str | None:
    """The run did not fail."""
    return equal(streamed.result.status != "failed", wanted)


STREAMS: dict[str, Check] = {
    **PEOPLE,
    "answered_with_error": answered_with_error,
    "class": failure_class,
    "complete": complete,
    "content": content,
    "error_mentions": error_mentions,
    "executed_calls": executed_calls,
    "invalid_tool_calls": invalid_tool_calls,
    "max_model_calls": max_model_calls,
    "model_calls": model_calls,
    "must_not": PEOPLE["must"],
    "must_not_execute": must_not_execute,
    "no_exception": no_exception,
    "tool_calls": tool_calls,
    "usage": usage,
}
