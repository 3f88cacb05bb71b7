"""The course's tools (S0-17, S0-18): what goes wrong is told to the model, unless it is fatal."""

import json
from typing import Any

import pytest

from loopwright.errors import ConfigurationError
from loopwright.presets.course import (
    FatalToolError,
    Invalid,
    RunResult,
    Tool,
    ToolRegistry,
    ToolResultMessage,
    Valid,
)
from tests.support.course import ScriptedModel, call, calling, echo_tool, run, texts


async def answered(tool: Tool, arguments: dict[str, Any] | None = None) -> ToolResultMessage:
    """The result of one call of a tool."""
    model = ScriptedModel([calling("r1", call(tool.name, "c1", arguments or {}))])
    _, result = await run(model, tool, max_steps=1)
    assert result.status == "maxSteps"
    message = result.messages[-1]
    assert isinstance(message, ToolResultMessage)
    return message


def giving(output: Any) -> Tool:
    return Tool("give", "Give something.", lambda value, execution: output)


def error_code(message: ToolResultMessage) -> str:
    assert message.is_error
    return str(json.loads(message.content)["error"]["code"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("output", "content"),
    [
        ({"b": 1, "a": [True, None, "ä"]}, '{"a":[true,null,"ä"],"b":1}'),
        ("text", '"text"'),
        (None, "null"),
        (42, "42"),
    ],
)
async def test_an_output_is_compact_json_with_sorted_keys(output: Any, content: str) -> None:
    message = await answered(giving(output))
    assert (message.content, message.is_error) == (content, False)


@pytest.mark.anyio
@pytest.mark.parametrize("output", [object(), {1, 2}, float("nan"), [0] * 128, {"x": [[0] * 256]}])
async def test_an_output_that_is_no_bounded_json_is_an_error(output: Any) -> None:
    assert error_code(await answered(giving(output))) == "TOOL_OUTPUT_SERIALIZATION_FAILED"


@pytest.mark.anyio
async def test_an_output_of_127_items_in_a_list_is_allowed() -> None:
    assert not (await answered(giving([0] * 127))).is_error


@pytest.mark.anyio
async def test_a_long_output_is_cut_to_4096_code_points_and_says_so() -> None:
    message = await answered(giving("\N{GRINNING FACE}" * 5000))
    assert len(message.content) == 4096
    assert message.content.endswith("\n[result cut to its limit]")
    whole = await answered(giving("x" * 4094))
    assert whole.content == '"' + "x" * 4094 + '"'


async def asynchronous(arguments: Any) -> Valid:
    return Valid(arguments)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("validate", "code"),
    [
        (lambda arguments: Invalid("no"), "TOOL_ARGUMENTS_INVALID"),
        (lambda arguments: 1 / 0, "TOOL_VALIDATION_FAILED"),
        (asynchronous, "TOOL_VALIDATION_FAILED"),
        (lambda arguments: True, "TOOL_VALIDATION_FAILED"),
        (lambda arguments: arguments.update(x=1), "TOOL_VALIDATION_FAILED"),
    ],
)
async def test_what_a_validator_refuses_is_told_and_not_run(validate: Any, code: str) -> None:
    ran = list[str]()
    tool = Tool("echo", "Echo.", lambda value, execution: ran.append("x"), validate)
    assert error_code(await answered(tool, {"a": 1})) == code
    assert not ran


@pytest.mark.anyio
async def test_a_tool_gets_what_its_validator_let_through() -> None:
    tool = Tool(
        "twice", "Twice.", lambda value, execution: value, lambda given: Valid(given["n"] * 2)
    )
    assert (await answered(tool, {"n": 21})).content == "42"


@pytest.mark.anyio
async def test_an_unknown_tool_is_told() -> None:
    model = ScriptedModel([calling("r1", call('no "such" {tool}', "c1", {})), texts("r2", "ok")])
    _, result = await run(model)
    message = result.messages[2]
    assert isinstance(message, ToolResultMessage)
    assert (message.tool_name, error_code(message)) == ('no "such" {tool}', "TOOL_NOT_FOUND")


def fatal(value: Any, execution: Any) -> Any:
    raise FatalToolError("the disk is on fire")


async def burning() -> tuple[RunResult, list[str]]:
    executed = list[str]()
    calls = [call("echo", "c1", {}), call("fatal", "c2", {}), call("echo", "c3", {})]
    model = ScriptedModel([calling("r1", *calls), texts("r2", "no")])
    _, result = await run(model, echo_tool(executed), Tool("fatal", "Fails for good.", fatal))
    return result, executed


@pytest.mark.anyio
async def test_a_fatal_failure_ends_the_run_and_keeps_the_results_before_it() -> None:
    result, executed = await burning()
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.code, result.error.message) == (
        "TOOL_EXECUTION_FAILED",
        "the disk is on fire",
    )
    assert executed == ["c1"]
    assert [m.role for m in result.messages] == ["user", "assistant", "toolResult"]


def test_a_registry_refuses_names_that_are_blank_or_taken() -> None:
    registry = ToolRegistry([giving(1)])
    with pytest.raises(ConfigurationError, match="registered already"):
        registry.register(giving(2))
    with pytest.raises(ConfigurationError, match="no tool with a name"):
        registry.register(Tool(" ", "Blank.", fatal))
    assert [tool.name for tool in registry.snapshot()] == ["give"]
