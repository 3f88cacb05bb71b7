"""The life of one tool call: prepared, executed, finalised; every failure of it is a result.

In which order the calls of a batch go through this is decided by the `tool_batch` node.
"""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from loopwright.cancelling import uncut, unless_cut
from loopwright.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from loopwright.hooks import AfterToolCall, Ask, BeforeToolCall, ToolCallContext, settled
from loopwright.runs import Run
from loopwright.state.messages import Call, new_id
from loopwright.tools.arguments import validate
from loopwright.tools.bounding import bounded
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult
from loopwright.tools.execution import error_text, run_call
from loopwright.watching import barred


@dataclass(frozen=True)
class Batch:
    """What the calls of one batch share: their message and the context that ends with it."""

    message: AIMessage
    messages: list[AnyMessage]
    system_prompt: str
    run: Run


@dataclass(frozen=True)
class Prepared:
    """A call whose tool may run with these arguments."""

    call: Call
    tool: Tool
    arguments: JsonObject


@dataclass(frozen=True)
class Asking:
    """A call whose tool may run if a person says so."""

    call: Call
    tool: Tool
    arguments: JsonObject
    ask: Ask


@dataclass(frozen=True)
class Outcome:
    """A call with its result."""

    call: Call
    result: ToolResult

    def message(self) -> ToolMessage:
        """The result as it joins the ledger; `terminate` is not stored."""
        return ToolMessage(
            content=self.result.content,
            tool_call_id=self.call.id,
            name=self.call.name,
            status="error" if self.result.is_error else "success",
            artifact=self.result.details,
            additional_kwargs=_extras(self.result),
            id=new_id(),
        )


def _extras(result: ToolResult) -> dict[str, Any]:
    extras = {"usage": result.usage, "added_tools": list(result.added_tools)}
    return {name: value for name, value in extras.items() if value}


def refused(call: Call, text: str, *, terminate: bool | None = None) -> Outcome:
    """A call that is answered with an error and does not run."""
    return Outcome(call, ToolResult(content=text, is_error=True, terminate=terminate))


async def start(batch: Batch, call: Call) -> None:
    """Tell that a call is being looked at; arguments as the model gave them."""
    await batch.run.emit(
        ToolExecutionStart(tool_call_id=call.id, tool_name=call.name, arguments=call.arguments)
    )


async def end(batch: Batch, outcome: Outcome) -> Outcome:
    """Tell that a call has its result, which is cut to its limit."""
    run, call = batch.run, outcome.call
    most = run.settings.limits.result_characters
    outcome = Outcome(call, bounded(outcome.result, most, run.dependencies.wording.truncated))
    result = outcome.result
    await batch.run.emit(
        ToolExecutionEnd(
            tool_call_id=outcome.call.id,
            tool_name=outcome.call.name,
            content=result.content,
            is_error=result.is_error,
            details=result.details,
            terminate=result.terminate,
        )
    )
    return outcome


async def prepare(batch: Batch, call: Call) -> Prepared | Asking | Outcome:
    """Find the tool, prepare and check the arguments, ask the hook, look at the signal.

    In this order (BEHAVIOUR 5): an unknown tool and bad arguments reach no hook, and an abort seen
    behind the hook wins over its answer.
    """
    if (result := barred(batch.run, call)) is not None:
        return Outcome(call, result)
    if call.error is not None:
        return refused(call, f"Not executed: {call.error}")
    tool = batch.run.offered_tools().get(call.name)
    if tool is None:
        known = ", ".join(sorted(batch.run.offered_tools().names())) or "none"
        unknown = batch.run.dependencies.wording.unknown_tool
        return refused(call, unknown.format(name=call.name, known=known))
    try:
        raw = deepcopy(call.arguments)
        given = tool.prepare_arguments(raw) if tool.prepare_arguments else raw
        arguments = validate(tool, given, batch.run.argument_rules())
        answer = await _before(batch, call, arguments)
    except GraphBubbleUp:
        raise
    except Exception as error:  # a tool call's own code: its failure is the call's result
        return refused(call, error_text(error))
    if batch.run.signal.aborted:
        return refused(call, batch.run.dependencies.wording.aborted)
    return _as_answered(batch, Prepared(call, tool, arguments), answer)


def _as_answered(
    batch: Batch, prepared: Prepared, answer: BeforeToolCall | Ask | None
) -> Prepared | Asking | Outcome:
    """What the hook's answer makes of a call that could run.

    A person who was asked about it decides, even if the hook asks no longer; a block stands.
    """
    call = prepared.call
    if isinstance(answer, BeforeToolCall) and answer.block:
        reason = answer.reason or batch.run.dependencies.wording.blocked
        return refused(call, reason, terminate=answer.terminate)
    if isinstance(answer, Ask) or call.id in batch.run.asked_about:
        ask = answer if isinstance(answer, Ask) else Ask()
        return Asking(call, prepared.tool, prepared.arguments, ask)
    return prepared


async def _before(batch: Batch, call: Call, arguments: JsonObject) -> BeforeToolCall | Ask | None:
    hook = batch.run.dependencies.hooks.before_tool_call
    if hook is None:
        return None
    answer: BeforeToolCall | Ask | None = await settled(hook(_hook_context(batch, call, arguments)))
    return answer


def _hook_context(
    batch: Batch, call: Call, arguments: JsonObject, result: ToolResult | None = None
) -> ToolCallContext:
    return ToolCallContext(
        message=batch.message,
        call=call,
        arguments=arguments,
        messages=list(batch.messages),
        system_prompt=batch.system_prompt,
        signal=batch.run.signal,
        result=result,
    )


async def perform(batch: Batch, prepared: Prepared) -> Outcome:
    """Run the tool, let the hook finalise the result, and tell the end.

    A call whose run was aborted before its body could start does not run and reaches no hook.
    """
    unless_cut(batch.run)
    if batch.run.signal.aborted:
        return await end(batch, refused(prepared.call, batch.run.dependencies.wording.aborted))
    progress = _Progress(batch.run, prepared.call)
    try:
        body = run_call(
            prepared.tool,
            prepared.arguments,
            _tool_context(batch, prepared.call, progress.report),
            timeout=batch.run.settings.tool_timeout,
        )
        result = await uncut(batch.run, body)
    finally:
        await progress.close()
    return await end(batch, Outcome(prepared.call, await _finalised(batch, prepared, result)))


async def _finalised(batch: Batch, prepared: Prepared, result: ToolResult) -> ToolResult:
    hook = batch.run.dependencies.hooks.after_tool_call
    if hook is None:
        return result
    try:
        context = _hook_context(batch, prepared.call, prepared.arguments, result)
        answer: AfterToolCall | None = await settled(hook(context))
    except GraphBubbleUp:
        raise
    except Exception as error:  # a tool call's own code: its failure is the call's result
        return ToolResult(content=error_text(error), is_error=True)
    if answer is None:
        return result
    given = {
        name: getattr(answer, name)
        for name in ("content", "details", "usage", "is_error", "terminate")
        if getattr(answer, name) is not None
    }
    return replace(result, **given)


def _tool_context(batch: Batch, call: Call, update: Callable[[Any], None]) -> ToolContext:
    run = batch.run
    return ToolContext(
        thread=run.thread,
        run_id=run.id,
        call_id=call.id,
        signal=run.signal,
        workspace=run.dependencies.workspace,
        update=update,
        state={"messages": list(batch.messages)},
        store=run.store,
    )


@dataclass
class _Progress:
    """The progress reports of one running call: told in order, ignored once it has its result.

    The body does not wait for listeners, but its result does (BEHAVIOUR 5). A report from a thread
    hops to the loop first.
    """

    run: Run
    call: Call
    closed: bool = False
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.context = copy_context()

    def report(self, partial: ToolResult | str) -> None:
        """Callable from any thread; never raises."""
        if self.closed or self.loop.is_closed():
            return
        result = partial if isinstance(partial, ToolResult) else ToolResult(content=str(partial))
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            self._tell(result)
        else:
            self.loop.call_soon_threadsafe(self._tell, result)

    def _tell(self, partial: ToolResult) -> None:
        if self.closed:
            return
        event = ToolExecutionUpdate(
            tool_call_id=self.call.id,
            tool_name=self.call.name,
            arguments=self.call.arguments,
            partial={"content": partial.content, "details": partial.details},
        )
        self.tasks.append(self.loop.create_task(self.run.emit(event), context=self.context.copy()))

    async def close(self) -> None:
        """Wait until all reports were heard; raises what a listener raised."""
        await asyncio.sleep(0)
        self.closed = True
        if self.tasks:
            await asyncio.wait(self.tasks)
        for error in [task.exception() for task in self.tasks]:
            if error is not None:
                raise error
