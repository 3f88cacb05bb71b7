"""A Tool from a langchain tool, taken as it is: its schema, injected arguments, body and hints.

Which parameters are injected is found in `injection`; its answers are read in `answers`.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as TextTool
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import ValidationError
from pydantic.errors import PydanticUserError

from loopwright.errors import ConfigurationError
from loopwright.tools import answers
from loopwright.tools.arguments import InvalidArguments, model_faults
from loopwright.tools.calling import call_in_thread, in_thread
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult
from loopwright.tools.injection import injected, injections
from loopwright.tools.results import as_result


def langchain_tool(tool: BaseTool) -> Tool:
    """A Tool that runs `tool` by LangChain's own means: validation, callbacks, error handling.

    `metadata` or `extras` may say `effects` and `execution_mode`, or carry MCP's hints
    (`readOnlyHint`, `idempotentHint`, `destructiveHint`); without them effects are `unsafe`.
    `return_direct` asks to end the run after a good result. An artifact becomes `details`. Injected
    arguments are hidden from the model and are dropped if it sends them.

    Raises ConfigurationError, naming the tool, for a schema that has no JSON form, and for effects
    or a mode that are none.
    """
    said = {**(getattr(tool, "extras", None) or {}), **(tool.metadata or {})}
    wanted = injections(tool)
    runnable = _with_readable_values(tool)
    run = _runner(runnable)

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        config = _config(context)
        given = {name: value for name, value in arguments.items() if name not in wanted}
        request = {
            "type": "tool_call",
            "id": context.call_id,
            "name": tool.name,
            "args": given | injected(wanted, context, config),
        }
        try:
            answer = await run(request, config)
        except ValidationError as error:
            raise _readable(error, tool) from error
        result = answers.read(answer, call_id=context.call_id)
        return _ending(result) if tool.return_direct and not result.is_error else result

    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=_parameters(tool, wanted),
        execute=execute,
        execution_mode=said.get("execution_mode"),
        effects=_effects(said),
    )


def _parameters(tool: BaseTool, hidden: Mapping[str, Any]) -> JsonObject:
    try:
        written = convert_to_openai_function(tool).get("parameters") or {}
    except (PydanticUserError, ValueError, TypeError) as error:
        raise _refusal(tool, f"its arguments have no JSON schema ({error})") from error
    schema = {"type": "object", "properties": {}, **written}
    schema["properties"] = {n: s for n, s in schema["properties"].items() if n not in hidden}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in hidden]
    return schema


def _runner(tool: BaseTool) -> Callable[[JsonObject, RunnableConfig], Awaitable[Any]]:
    """LangChain runs sync tools in asyncio's own few threads; here they get one of ours."""
    if not _is_sync(tool):
        return lambda request, config: tool.ainvoke(request, config)
    return lambda request, config: in_thread(lambda: tool.invoke(request, config))


def _is_sync(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool | TextTool) and tool.coroutine:
        return False
    inherited = (BaseTool._arun, StructuredTool._arun, TextTool._arun)
    return type(tool)._arun in inherited and type(tool).arun is BaseTool.arun


def _config(context: ToolContext) -> RunnableConfig:
    """The config of the graph around the call, so that callbacks and tracing go on in the tool."""
    config = ensure_config()
    known = {
        "thread_id": context.thread,
        "run_id": context.run_id,
        "idempotency_key": context.idempotency_key,
    }
    config["configurable"] = known | config.get("configurable", {})
    return config


def _with_readable_values(tool: BaseTool) -> BaseTool:
    """A copy whose function gives LangChain only what it does not print with `str()`.

    A class of the user's own keeps its `_run` untouched, and with it LangChain's way with values.
    """
    if type(tool) not in (StructuredTool, TextTool):
        return tool
    changes = {}
    for name in ("func", "coroutine"):
        function = getattr(tool, name)
        if inspect.isroutine(function):
            wrap = _readable_coroutine if name == "coroutine" else _readable_function
            changes[name] = wrap(function, tool.response_format == "content_and_artifact")
    return tool.model_copy(update=changes)


def _readable_function(function: Callable[..., Any], has_artifact: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        value = call_in_thread(functools.partial(function, *args, **kwargs))
        return _value(value, has_artifact)

    return run


def _readable_coroutine(function: Callable[..., Any], has_artifact: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return _value(await function(*args, **kwargs), has_artifact)

    return run


def _value(value: Any, has_artifact: bool) -> Any:
    """Of a pair of content and artifact only the content is made readable."""
    if not has_artifact:
        return _content(value)
    if isinstance(value, tuple) and len(value) == 2:
        return _content(value[0]), value[1]
    return value  # LangChain's own error says what is wrong with it


def _content(value: Any) -> Any:
    """What LangChain has words for stays; the rest is written as our own functions' values are."""
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, ToolOutputMixin) for part in parts):
        return value
    result = as_result(value)
    if result.is_error:
        raise TypeError(result.content)
    return result.content


def _readable(error: ValidationError, tool: BaseTool) -> Exception:
    """Bad arguments are told like those of any tool; an error of the body itself stays as it is."""
    if error.title == getattr(tool.args_schema, "__name__", None):
        return InvalidArguments(tool.name, model_faults(error))
    return error


def _ending(result: ToolResult) -> ToolResult:
    return replace(result, terminate=True)


def _effects(said: Mapping[str, Any]) -> Any:
    """Hints are the author's word; a tool that calls itself destructive is not read-only.

    Not being destructive is not enough: what only adds something adds it twice when it runs twice.
    """
    if said.get("effects") is not None:
        return said["effects"]
    if said.get("readOnlyHint") is True and said.get("destructiveHint") is not True:
        return "none"
    return "idempotent" if said.get("idempotentHint") is True else "unsafe"


def _refusal(tool: BaseTool, reason: str) -> ConfigurationError:
    return ConfigurationError(f"tool {tool.name!r}: {reason}", field="tools")
