"""Suite `argument_dispatch`: raw text of a call's arguments, streamed to a run that has the tool.

Why a text was refused is asked of the function that the run asks.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from loopwright import Agent, Tool, ToolContext, ToolResult
from loopwright.providers.arguments import ArgumentsError, parse_arguments
from loopwright.testing import Response, ScriptedModel
from tests.conformance.running import Case, difference, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """Whether the tool ran, with which arguments, and that the model was told if it did not."""
    unknown = unknown_keys("input", case.input, ["raw"])
    unknown += unknown_keys("expected", case.expect, ["execute", "args", "code"])
    if unknown:
        return unknown
    ran: list[Any] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append(arguments)
        return ToolResult(content="ran")

    tool = Tool(name="t", description="T.", parameters={"type": "object"}, execute=execute)
    raw = case.input["raw"]
    model = ScriptedModel([Response(calls=[("c1", "t", raw)]), "Done."])
    async with Agent(model, tools=[tool]) as agent:
        result = await agent.prompt("Go.")
    (answer,) = [message for message in result.messages if isinstance(message, ToolMessage)]
    execute_it = case.expect["execute"]
    told = model.requests[-1].messages[-1]
    return [
        *difference("the calls that ran", ran, [case.expect["args"]] if execute_it else []),
        *difference("whether the result is an error", answer.status == "error", not execute_it),
        *difference("the code", _fault(raw), case.expect.get("code")),
        *difference("what the model is told", told.content, answer.content),
        *difference("the calls that are stored", len(_calls(result.messages)), 1),
    ]


def _fault(raw: str) -> str | None:
    try:
        parse_arguments(raw)
    except ArgumentsError as error:
        return error.fault
    return None


def _calls(messages: Sequence[Any]) -> list[Any]:
    answers = [message for message in messages if isinstance(message, AIMessage)]
    return [call for one in answers for call in [*one.tool_calls, *one.invalid_tool_calls]]
