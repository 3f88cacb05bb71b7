"""Kind `content`: what stands for missing, blank and cut-up content in a request."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright import Tool, ToolContext, ToolResult
from loopwright.providers.dialect import GENERIC, Dialect
from loopwright.testing import Response
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import Row, rows, served, strict, text

USER = HumanMessage("hello", id="u1")
WORDS: dict[str, AnyMessage] = {
    "user": USER,
    "assistant(calls c1, no text)": AIMessage(
        "", id="a1", tool_calls=[{"name": "t", "args": {}, "id": "c1"}]
    ),
    "tool c1": ToolMessage("ok", id="r1", tool_call_id="c1", name="t"),
}


async def drive(case: Case) -> Sequence[str]:
    """Send what the case describes to a server, and look at what it got."""
    given = case.input
    if unknown := unknown_keys(
        "input",
        given,
        ["server_rule", "history", "assistant_content", "calls", "target", "tool_result"],
    ):
        return unknown
    if "server_rule" in given:
        history = [WORDS[word] for word in given["history"]]
        return unmet(case.expect, await _refused(history, given["server_rule"]), STRICT)
    if "tool_result" in given:
        return unmet(case.expect, await _result(given["tool_result"]), SENT)
    return unmet(case.expect, await _answer(given), SENT)


async def _refused(history: list[AnyMessage], rule: str) -> dict[str, Any]:
    """How a server with a rule takes the history, as it is and with the provider's option."""
    accepted: list[str] = []
    bodies: list[Any] = []
    for name, dialect in {
        "by itself": GENERIC,
        "with the provider option": Dialect(null_content=False),
    }.items():
        replies = (strict(rule, "fine") for _ in range(9))
        async with served(replies, dialect=dialect, stored=history) as (agent, server):
            result = await agent.prompt("go on")
            bodies.append([request.raw for request in server.requests])
        accepted += [name] if result.status == "completed" else []
    return {"accepted": accepted, "bodies": bodies}


async def _result(content: Any) -> list[Row]:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=content)

    tool = Tool(name="t", description="", parameters={"type": "object"}, execute=execute)
    replies: list[Any] = [Response(calls=[("c1", "t", {})]), "fine"]
    async with served(replies, tools=[tool]) as (agent, server):
        await agent.prompt("go")
        return rows(server.requests[-1])


async def _answer(given: dict[str, Any]) -> list[Row]:
    calls: Any = [{"name": "t", "args": {}, "id": f"c{n}"} for n in range(given.get("calls", 0))]
    message = AIMessage(given["assistant_content"], id="a", tool_calls=calls)
    results = [ToolMessage("ok", id=f"r{n}", tool_call_id=c["id"]) for n, c in enumerate(calls)]
    async with served(["fine"], stored=[USER, message, *results]) as (agent, server):
        await agent.prompt("go on")
        return rows(server.requests[0])


def _is_sent_once(sent: dict[str, Any], wanted: bool) -> str | None:
    twice = any(len(set(bodies)) < len(bodies) for bodies in sent["bodies"])
    return equal(twice, wanted)


def _is_accepted(sent: dict[str, Any], ways: list[str]) -> str | None:
    return None if set(ways) & set(sent["accepted"]) else f"accepted only {sent['accepted']}"


def _has_no_blank(sent: list[Row], wanted: bool) -> str | None:
    texts = [row["content"] for row in sent if row["role"] == "assistant"]
    blocks = [block for t in texts for block in (t if isinstance(t, list) else [{"text": t}])]
    blank = any(b.get("text") is not None and not b["text"].strip() for b in blocks)
    return equal(not blank, wanted)


def _says(sent: list[Row], wanted: str) -> str | None:
    return equal([row["content"] for row in sent if row["role"] == "assistant"], [wanted])


def _result_says(sent: list[Row], wanted: bool) -> str | None:
    results = [text(row) for row in sent if row["role"] == "tool"]
    return equal(bool(results) and all(said.strip() for said in results), wanted)


STRICT: dict[str, Check] = {
    **PEOPLE,
    "same_body_sent_twice": _is_sent_once,
    "request_accepted_any_of": _is_accepted,
}
SENT: dict[str, Check] = {
    **PEOPLE,
    "no_blank_text_block_on_wire": _has_no_blank,
    "wire_text": _says,
    "wire_tool_content_nonempty": _result_says,
}
