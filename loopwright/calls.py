"""The first half of a tool call's life: recalled or prepared; every failure of it is a result.

The second half, in which its body runs, is in `performing`. In which order the calls of a batch go
through both is decided by the `tool_batch` node.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from loopwright.events import ToolExecutionEnd, ToolExecutionStart
from loopwright.hooks import Ask, BeforeToolCall, ToolCallContext, settled
from loopwright.runs import Run
from loopwright.state.journal import Fate, Journal, Known
from loopwright.state.messages import Call, new_id
from loopwright.state.repair import INTERRUPTED
from loopwright.tools.arguments import validate
from loopwright.tools.bounding import bounded
from loopwright.tools.contract import JsonObject, Tool, ToolResult
from loopwright.tools.execution import error_text
from loopwright.tools.result_json import from_json, to_json
from loopwright.watching import barred


def _no_journal() -> Journal:
    return Journal(None, "", "")


@dataclass(frozen=True)
class Batch:
    """What the calls of one batch share: their message and the context that ends with it."""

    message: AIMessage
    messages: list[AnyMessage]
    system_prompt: str
    run: Run
    journal: Journal = field(default_factory=_no_journal)
    """Where the batch notes what its calls do."""

    known: Known = field(default_factory=Known)
    """What was noted of them before, by a run that did not get to the end of the batch."""

    outcomes: dict[str, "Outcome"] = field(default_factory=dict)
    """What has its result, by call id."""


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

    def unasked(self) -> Prepared:
        """The same call without the question."""
        return Prepared(self.call, self.tool, self.arguments)


@dataclass(frozen=True)
class Outcome:
    """A call with its result, and the id that its message has in the ledger."""

    call: Call
    result: ToolResult
    id: str = field(default_factory=new_id)

    def message(self) -> ToolMessage:
        """The result as it joins the ledger; `terminate` is not stored."""
        return ToolMessage(
            content=self.result.content,
            tool_call_id=self.call.id,
            name=self.call.name,
            status="error" if self.result.is_error else "success",
            artifact=self.result.details,
            additional_kwargs=_extras(self.result),
            id=self.id,
        )

    def noted(self) -> JsonObject:
        """All of it but the call, as the journal keeps it."""
        return {"id": self.id, **to_json(self.result)}

    @classmethod
    def of(cls, call: Call, fate: Fate) -> "Outcome":
        """The outcome of a call that the journal knows to be finished."""
        return cls(call, from_json(fate.result), fate.result["id"])


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


def fitted(batch: Batch, outcome: Outcome) -> Outcome:
    """The outcome with a result that is cut to the limit of the run."""
    run = batch.run
    most = run.settings.limits.result_characters
    return replace(
        outcome, result=bounded(outcome.result, most, run.dependencies.wording.truncated)
    )


async def end(batch: Batch, outcome: Outcome) -> Outcome:
    """Tell that a call has its result, which is kept even if a listener fails."""
    outcome = fitted(batch, outcome)
    batch.outcomes[outcome.call.id] = outcome
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


def recalled(batch: Batch, call: Call) -> Outcome | None:
    """What an earlier attempt at the batch makes of a call; None if it has yet to run.

    What has finished keeps its result. What has only started may have taken effect: it is not run
    again, unless its tool says that this does no harm.
    """
    fate = batch.known.fate(call)
    if fate.kind == "finished":
        return Outcome.of(call, fate)
    tool = batch.run.offered_tools().get(call.name)
    harmless = tool is not None and tool.effects != "unsafe"
    return None if fate.kind != "started" or harmless else refused(call, INTERRUPTED)


async def prepare(batch: Batch, call: Call) -> Prepared | Asking | Outcome:
    """Recall the call, or else prepare it; a call that is recalled reaches no hook."""
    ready = recalled(batch, call) or await _prepared(batch, call)
    if isinstance(ready, Outcome) and not is_kept(batch, call):
        batch.journal.refused(call, ready.noted())
    return ready


def is_kept(batch: Batch, call: Call) -> bool:
    """Whether the journal has the call's result, which a kill would not lose."""
    return batch.journal.has_result(call) or batch.known.fate(call).kind == "finished"


async def _prepared(batch: Batch, call: Call) -> Prepared | Asking | Outcome:
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
    answer: BeforeToolCall | Ask | None = await settled(hook(hook_context(batch, call, arguments)))
    return answer


def hook_context(
    batch: Batch, call: Call, arguments: JsonObject, result: ToolResult | None = None
) -> ToolCallContext:
    """What the hooks around a call are shown; `result` only behind it."""
    return ToolCallContext(
        message=batch.message,
        call=call,
        arguments=arguments,
        messages=list(batch.messages),
        system_prompt=batch.system_prompt,
        signal=batch.run.signal,
        result=result,
    )
