"""Suite `thinking_blocks`: what another model, or the same one, is sent of an answer's thinking.

The answer is stored as our own assembly would have stored it. A model that takes langchain-core's
standard blocks is asked, and then a server of chat completions, which is never sent a signature.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright import Agent, Settings
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.dialect import Dialect
from loopwright.testing import ScriptedModel
from tests.conformance.loading import THREAD, store
from tests.conformance.running import Case, difference, unknown_keys
from tests.conformance.sending import Maker, served

STANDARD = Dialect(thinking_back="standard", texts="blocks")
SIGNATURES = ("signature", "thoughtSignature", "thought_signature", "redacted_thinking")


async def drive(case: Case) -> Sequence[str]:
    """Go on with the target after the answer, under the policy `text` unless the case says."""
    given = case.input
    unknown = unknown_keys("input", given, ["message", "target", "policy", "foreign_thinking"])
    unknown += unknown_keys("message", given["message"], ["role", "content", "producer"])
    if unknown := unknown + unknown_keys("expected", case.expect, ["content", "omit_message"]):
        return unknown
    policy = str(given.get("foreign_thinking", given.get("policy", "text")))
    settings = Settings(foreign_thinking=policy.removeprefix("foreign_thinking="))  # type: ignore[arg-type]
    stored: list[AnyMessage] = [HumanMessage("hello", id="u"), _message(given["message"])]
    before, target = deepcopy(stored), Maker(**given["target"])
    sent, kept = await _asked(stored, target, settings)
    async with served(["fine"], maker=target, stored=stored, settings=settings) as (agent, server):
        await agent.prompt("go on")
        body = server.requests[0].raw.decode()
    return [
        *difference("omit_message", not sent, case.expect["omit_message"]),
        *difference("content", [b for m in sent for b in _blocks(m)], case.expect["content"]),
        *difference("signatures over HTTP", [word for word in SIGNATURES if word in body], []),
        *difference("the stored transcript", repr(kept[:2]), repr(before)),
    ]


async def _asked(
    stored: list[AnyMessage], target: Maker, settings: Settings
) -> tuple[list[AIMessage], list[AnyMessage]]:
    """The answers in the request of a run that goes on, and the stored thread behind it."""
    model = ScriptedModel(["fine"])
    provider = ChatModelProvider(
        model, id=target.provider, name=target.model, api=target.api, dialect=STANDARD
    )
    async with Agent(provider, thread=THREAD, settings=settings) as agent:
        await store(agent, stored, "ended")
        await agent.prompt("go on")
        kept = agent.messages()
    return [m for m in model.requests[0].messages if isinstance(m, AIMessage)], kept


def _message(row: dict[str, Any]) -> AnyMessage:
    content: Any = [_stored(block) for block in row["content"]]
    calls: Any = [
        {key: value for key, value in block.items() if key != "extras"}
        for block in content
        if block["type"] == "tool_call"
    ]
    metadata = row.get("producer") or {}
    return AIMessage(content, id="a", tool_calls=calls, response_metadata=metadata)


def _stored(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "toolCall":
        signed = {"extras": {"thought_signature": block.get("thoughtSignature")}}
        call = {"name": block["name"], "args": block["arguments"], "id": block["id"]}
        return {"type": "tool_call", **call, **(signed if "thoughtSignature" in block else {})}
    if block["type"] != "thinking":
        return block
    if block.get("redacted"):
        return {"type": "redacted_thinking", "data": block["signature"]}
    extras = {"extras": {"signature": block["signature"]}} if "signature" in block else {}
    return {"type": "reasoning", "reasoning": block["text"], **extras}


def _blocks(message: AIMessage) -> list[dict[str, Any]]:
    """A message that was sent, in the words of the suite."""
    content = message.content
    blocks: list[Any] = [content] if isinstance(content, str) else content
    return [*map(_block, filter(None, blocks)), *map(_call, message.tool_calls)]


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block["type"] == "redacted_thinking":
        return {"type": "thinking", "text": "", "redacted": True, "signature": block["data"]}
    if block["type"] != "reasoning":
        return dict(block)
    return {"type": "thinking", "text": block["reasoning"], **block.get("extras", {})}


def _call(call: Any) -> dict[str, Any]:
    extras = call.get("extras", {})
    signed = {"thoughtSignature": extras["thought_signature"]} if extras else {}
    made = {"type": "toolCall", "id": call["id"], "name": call["name"]}
    return {**made, "arguments": call["args"], **signed}
