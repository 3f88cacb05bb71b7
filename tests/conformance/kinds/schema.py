"""Kind `schema`: tools' schemas in the form that servers get, and what arguments still fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright import Tool, ToolContext, ToolResult
from loopwright.testing import Response
from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.sending import served


@dataclass(frozen=True)
class Sent:
    """The schema that the server got, and the arguments with which the tool ran."""

    schema: dict[str, Any]
    ran: list[dict[str, Any]]


async def drive(case: Case) -> Sequence[str]:
    """Offer a tool with this schema; the model calls it with each of the arguments."""
    if unknown := unknown_keys("input", case.input, ["schema"]):
        return unknown
    ran: list[dict[str, Any]] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append(arguments)
        return ToolResult(content="ok")

    tool = Tool(name="t", description="", parameters=case.input["schema"], execute=execute)
    calls = [
        (f"c{at}", "t", given) for at, given in enumerate(case.expect.get("still_accepts", []))
    ]
    replies: list[Any] = [Response(calls=calls), "fine"] if calls else ["fine"]
    async with served(replies, tools=[tool]) as (agent, server):
        await agent.prompt("go")
        (sent,) = server.requests[0].body["tools"]
    return unmet(case.expect, Sent(sent["function"]["parameters"], ran), CHECKS)


def _parts(value: Any, *, of_names: bool = False) -> Iterator[dict[str, Any]]:
    """Every subschema; names of fields are no words of a schema."""
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        if not of_names:
            yield value
        for key, item in value.items():
            if of_names or key not in ("default", "enum", "const", "examples"):
                yield from _parts(item, of_names=not of_names and key == "properties")


def _terminates(sent: Sent, wanted: bool) -> str | None:
    return equal(bool(sent.schema), wanted)


def _has_no(sent: Sent, words: list[str]) -> str | None:
    return equal([word for word in words for part in _parts(sent.schema) if word in part], [])


def _accepts(sent: Sent, wanted: list[dict[str, Any]]) -> str | None:
    return equal(sorted(map(repr, sent.ran)), sorted(map(repr, wanted)))


def _strict_form(sent: Sent, wanted: str) -> str | None:
    """`type T, optional` of the only field."""
    ((name, field),) = sent.schema["properties"].items()
    need = "required" if name in sent.schema.get("required", []) else "optional"
    return equal(f"type {field.get('type')}, {need}", wanted)


def _items(sent: Sent, wanted: bool) -> str | None:
    arrays = [part for part in _parts(sent.schema) if part.get("type") == "array"]
    return equal(bool(arrays) and all("items" in part for part in arrays), wanted)


def _top(sent: Sent, wanted: str) -> str | None:
    return equal(sent.schema.get("type"), wanted)


CHECKS: dict[str, Check] = {
    **PEOPLE,
    "terminates": _terminates,
    "wire_has_no": _has_no,
    "still_accepts": _accepts,
    "strict_provider_form": _strict_form,
    "wire_items_present": _items,
    "wire_top_level_type": _top,
}
