"""Kind `image`: what a tool or a user shows, on servers and models that do not take it there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage

from loopwright import RunResult, Tool, ToolContext, ToolResult
from loopwright.providers.dialect import Dialect
from loopwright.testing import HttpReply, Response
from loopwright.testing.http import ServerRequest
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import IMAGE, Row, has_image, rows, served, strict, text

PLACEHOLDER = "[image"
TURNS = ["tool image -> 400", "user: ping"]
SHOWING: list[Row] = [{"call": "c1", "result": [{"text": "shot"}, {"image": "png"}]}]


@dataclass(frozen=True)
class Sent:
    """The requests of the case, its runs, and the texts of the results that tools gave."""

    requests: list[ServerRequest]
    results: list[RunResult]
    texts: list[str]

    @property
    def rows(self) -> list[Row]:
        """The messages of the last request."""
        return rows(self.requests[-1])


async def drive(case: Case) -> Sequence[str]:
    """Run the batch, the user's message or the turns, and look at the last request."""
    given = case.input
    known = ["batch", "server_rule", "model_supports_images", "user", "turns"]
    if unknown := unknown_keys("input", given, known):
        return unknown
    dialect = Dialect(images=given.get("model_supports_images", True))
    batch: list[Row] = given.get("batch", SHOWING if "turns" in given else [])
    made = [(row["call"], "show", {"of": row["call"]}) for row in batch]
    last: Any = strict(given["server_rule"], "fine") if "server_rule" in given else "fine"
    replies: list[Any] = [Response(calls=made), last] if batch else [last]
    prompts: list[Any] = ["go"]
    if "user" in given:
        prompts = [HumanMessage([_block(block) for block in given["user"]])]
    if "turns" in given:
        if given["turns"] != TURNS:
            return [f"unknown turns {given['turns']!r}"]
        replies, prompts = [replies[0], *(_without_images for _ in range(9))], ["go", "ping"]
    async with served(replies, dialect=dialect, tools=[_tool(batch)]) as (agent, server):
        results = [await agent.prompt(prompt) for prompt in prompts]
        texts = [block["text"] for row in batch for block in row["result"] if "text" in block]
        return unmet(case.expect, Sent(server.requests, results, texts), CHECKS)


def _tool(batch: list[Row]) -> Tool:
    contents: Any = {row["call"]: [_block(block) for block in row["result"]] for row in batch}

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=contents[arguments["of"]])

    return Tool(name="show", description="", parameters={"type": "object"}, execute=execute)


def _without_images(body: Any) -> Any:
    """The reply of a server that refuses every image."""
    if not any(map(has_image, body["messages"])):
        return "fine"
    error = {"message": "Invalid image: this model does not support image input"}
    return HttpReply(status=400, body={"error": {**error, "type": "invalid_request_error"}})


def _block(block: Row) -> Row:
    return IMAGE if "image" in block else {"type": "text", "text": block["text"]}


def _tool_content(sent: Sent, wanted: str) -> str | None:
    if wanted != "text with a placeholder":
        return f"unknown value {wanted!r}"
    results = [row["content"] for row in sent.rows if row["role"] == "tool"]
    are_texts = all(isinstance(content, str) for content in results)
    fits = are_texts and PLACEHOLDER in "".join(results)
    return None if fits and all(t in "".join(results) for t in sent.texts) else f"is {results!r}"


def _follows(sent: Sent, wanted: bool) -> str | None:
    roles = [(row["role"], has_image(row)) for row in sent.rows]
    return equal(roles[-2:] == [("tool", False), ("user", True)], wanted)


def _accepted(sent: Sent, wanted: bool) -> str | None:
    return equal(sent.results[0].status == "completed", wanted)


def _order(sent: Sent, wanted: list[str]) -> str | None:
    return equal([_short(row) for row in sent.rows][-len(wanted) :], wanted)


def _short(row: Row) -> str:
    if row["role"] == "tool":
        return f"tool {row['tool_call_id']}"
    if calls := row.get("tool_calls"):
        return f"assistant({','.join(call['id'] for call in calls)})"
    return f"{row['role']}(image)" if has_image(row) else row["role"]


def _placeholder(sent: Sent, wanted: bool) -> str | None:
    return equal(any(PLACEHOLDER in text(row) for row in sent.rows), wanted)


def _no_image(sent: Sent, wanted: bool) -> str | None:
    return equal(not any(map(has_image, sent.rows)), wanted)


def _second_turn(sent: Sent, wanted: bool) -> str | None:
    return equal(sent.results[1].status == "completed", wanted)


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "tool_content": _tool_content,
    "image_in_following_user_message": _follows,
    "accepted": _accepted,
    "wire_order": _order,
    "placeholder": _placeholder,
    "no_image_on_wire": _no_image,
    "image_removed_from_wire": _no_image,
    "second_turn_ok": _second_turn,
}
