"""The second half of a tool call's life: its body runs between two notes in the journal.

What makes a call ready to run is in `calls`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langgraph.errors import GraphBubbleUp

from loopwright.calls import Batch, Outcome, Prepared, end, fitted, hook_context, refused
from loopwright.cancelling import uncut, unless_cut
from loopwright.failpoints import reach
from loopwright.hooks import AfterToolCall, settled
from loopwright.progress import Progress
from loopwright.state.journal import idempotency_key
from loopwright.tools.contract import ToolContext, ToolResult
from loopwright.tools.execution import error_text, run_call
from loopwright.tools.results import tidy


async def announce(batch: Batch, ready: Sequence[Prepared | Outcome]) -> None:
    """Note that these calls start: one commit for all of them, before the first body does."""
    await batch.journal.started([item.call for item in ready if isinstance(item, Prepared)])


async def perform(batch: Batch, prepared: Prepared) -> Outcome:
    """Run the tool, let the hook finalise the result, note it, and tell the end.

    A call whose run was aborted before its body could start does not run and reaches no hook. A
    task that is cancelled from outside notes a result that is there already.
    """
    unless_cut(batch.run)
    if batch.run.signal.aborted:
        aborted = refused(prepared.call, batch.run.dependencies.wording.aborted)
        batch.journal.refused(prepared.call, aborted.noted())
        return await end(batch, aborted)
    progress = Progress(batch.run, prepared.call)
    result: ToolResult | None = None
    try:
        try:
            result = await _body(batch, prepared, progress)
        finally:
            await progress.close()
    except asyncio.CancelledError:
        if result is not None:
            await _noted(batch, await _finalised(batch, prepared, result))
        raise
    except GraphBubbleUp:
        await batch.journal.asking(prepared.call)
        raise
    return await end(batch, await _noted(batch, await _finalised(batch, prepared, result)))


async def _body(batch: Batch, prepared: Prepared, progress: Progress) -> ToolResult:
    reach("before_effect")
    body = run_call(
        prepared.tool,
        prepared.arguments,
        _tool_context(batch, prepared, progress.report),
        timeout=batch.run.settings.tool_timeout,
    )
    result = await uncut(batch.run, body)
    reach("after_effect")
    return result


async def _noted(batch: Batch, outcome: Outcome) -> Outcome:
    if batch.journal.in_use:
        await batch.journal.finished(outcome.call, outcome.noted())
        reach("journal")
    return outcome


async def _finalised(batch: Batch, prepared: Prepared, result: ToolResult) -> Outcome:
    """The outcome as the hook leaves it, cut to its limit."""
    return fitted(batch, Outcome(prepared.call, await _after(batch, prepared, result)))


async def _after(batch: Batch, prepared: Prepared, result: ToolResult) -> ToolResult:
    hook = batch.run.dependencies.hooks.after_tool_call
    if hook is None:
        return result
    try:
        context = hook_context(batch, prepared.call, prepared.arguments, result)
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
    return tidy(replace(result, **given))


def _tool_context(batch: Batch, prepared: Prepared, update: Callable[[Any], None]) -> ToolContext:
    run, call = batch.run, prepared.call
    return ToolContext(
        thread=run.thread,
        run_id=run.id,
        call_id=call.id,
        idempotency_key=idempotency_key(
            run.thread, str(batch.message.id), call.id, prepared.arguments
        ),
        signal=run.signal,
        workspace=run.dependencies.workspace,
        update=update,
        state={"messages": list(batch.messages)},
        store=run.store,
    )
