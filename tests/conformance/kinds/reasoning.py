"""Kind `reasoning`: whose thinking is sent to whom, and in which form it never is."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright import Settings
from loopwright.providers.dialect import Dialect
from loopwright.testing import HttpReply
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import Maker, rows, served, text

INPUT = [
    *("history", "blocks", "kept", "policy", "target", "target_provider", "target_model"),
    *("first_reply", "second_reply"),
]
ROW = ["role", "provider", "model", "blocks", "content", "reasoning_content", "reasoning_details"]
BESIDE = ("reasoning_content", "reasoning_details")


async def drive(case: Case) -> Sequence[str]:
    """Send the history to the target over HTTP, and look at the body."""
    given = case.input
    history = given.get("history") or [{"role": "assistant", "blocks": _given_blocks(given)}]
    unknown = unknown_keys("input", given, INPUT)
    unknown += [reason for row in history for reason in unknown_keys("history", row, ROW)]
    if unknown:
        return unknown
    settings = Settings(**dict([given.get("policy", "foreign_thinking=drop").split("=")]))
    target = Maker(given.get("target_provider", "test"), model=given.get("target_model", "m"))
    stored: list[AnyMessage] = [HumanMessage("hello", id="u")]
    stored += [_message(at, row, target) for at, row in enumerate(history)]
    replies, dialect = ["fine"], Dialect()
    if "first_reply" in given:
        error = {"error": {"message": given["first_reply"]["message"]}}
        first: Any = HttpReply(status=given["first_reply"]["status"], body=error)
        replies = [first, given["second_reply"], "too many"]
        dialect = Dialect(thinking_back="reasoning_content")
    parts: dict[str, Any] = {"dialect": dialect, "maker": target, "settings": settings}
    async with served(replies, stored=stored, **parts) as (agent, server):
        await agent.prompt("go on")
        return unmet(case.expect, server.requests, CHECKS)


def _given_blocks(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks that a case gives without a message; one about a reply has signed thinking."""
    signed = {"type": "thinking", "text": "hm", "signature": "sig"}
    blocks: list[dict[str, Any]] = given.get("blocks") or given.get("kept") or []
    return blocks or [signed, {"type": "text", "text": "answer"}]


def _message(at: int, row: dict[str, Any], target: Maker) -> AnyMessage:
    """A stored answer. What its row does not say of its producer is as the target's."""
    maker = Maker(row.get("provider", target.provider), model=row.get("model", target.model))
    return AIMessage(
        [_block(block) for block in row["blocks"]] if "blocks" in row else row["content"],
        id=f"a{at}",
        additional_kwargs={key: row[key] for key in BESIDE if key in row},
        response_metadata=maker.metadata(),
    )


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "thinking":
        return block
    named = {key: value for key, value in block.items() if key != "text"}
    return {**named, "thinking": block["text"]}


def _lacks(requests: Any, words: list[str]) -> str | None:
    body = requests[-1].raw.decode()
    return equal([word for word in words if word in body], [])


def _says(requests: Any, wanted: str) -> str | None:
    return equal([text(row) for row in rows(requests[-1], "assistant")], [wanted])


def _differs(requests: Any, wanted: bool) -> str | None:
    if len(requests) < 2:
        return "there is no second request"
    return equal(requests[0].raw != requests[1].raw, wanted)


def _most(requests: Any, most: int) -> str | None:
    return None if len(requests) <= most else f"{len(requests)} requests"


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "wire_lacks": _lacks,
    "wire_text": _says,
    "second_body_differs": _differs,
    "max_calls": _most,
}
