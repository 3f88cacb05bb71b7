"""The node that makes room: the model summarises the older part, and requests see the summary.

The ledger keeps every message. When room is needed is decided by `queue_drain` and `model`.
"""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from loopwright.attempts import Question, key_for, settings_changed
from loopwright.errors import ModelError
from loopwright.events import Compaction
from loopwright.failpoints import reach
from loopwright.providers.contract import ModelRequest, Provider
from loopwright.runs import Run, Update
from loopwright.signals import Aborted
from loopwright.state.messages import ABORTED, ERROR, new_id, stop_reason
from loopwright.state.schema import AgentState, Decision, View
from loopwright.state.view import estimated_tokens, legal_cut, shown, summary_message

INSTRUCTION = (
    "Summarise the conversation above for your own later use. Keep the user's goals and wishes, "
    "decisions with their reasons, file names, identifiers, numbers, results that are still "
    "needed, and what is left to do. Do not call tools; answer with the summary only."
)


async def compact(state: AgentState, run: Run) -> Update:
    """Replace the older part of the view by a summary (S1-08). Writes `turn` or `stopped`.

    With nothing to cut off, or without a summary, the turn is tried as it is; after an overflow
    the run stops instead, because the same request would fail again. An aborted run is left to the
    next request, which ends it.
    """
    visible = shown(state["view"], state["messages"])
    cut = legal_cut(visible, run.settings.compaction_tail)
    can = cut > len(state["view"]["head"])
    summary = await _summary(state, run, visible[:cut]) if can else ""
    kept = settings_changed(state, run)
    if not summary:
        overflowed = state["run"]["overflow"] and not run.signal.aborted
        stopped = Decision(kind="stopped", reason="context_overflow")
        return {**kept, "decision": stopped if overflowed else Decision(kind="turn")}
    size = len(state["messages"])
    view = View(
        head=[summary_message(summary)],
        start=size - (len(visible) - cut),
        measured_from=size,
    )
    before, after = (
        estimated_tokens(visible),
        estimated_tokens(shown(view, state["messages"]), size),
    )
    await run.emit(Compaction(tokens_before=before, tokens_after=after))
    reach("compaction")
    return {**kept, "decision": Decision(kind="turn"), "view": view, "compaction": view}


async def _summary(state: AgentState, run: Run, older: Sequence[AnyMessage]) -> str:
    """The model's summary of the older part; empty if it failed. Tells no text, runs no tools."""

    async def request(provider: Provider) -> ModelRequest:
        return ModelRequest(
            model=run.settings.model,
            system_prompt=state["system_prompt"],
            messages=[*older, HumanMessage(INSTRUCTION, id=new_id())],
            api_key=await key_for(run, provider),
            patience=run.settings.stall_timeout,
            clock=run.dependencies.clock,
            signal=run.signal,
            session=run.thread,
            foreign_thinking=run.settings.foreign_thinking,
        )

    try:
        attempt = await Question(state=state, run=run, prepare=request).answer()
    except (Aborted, ModelError):  # cancelled in a wait, or a stream that broke the contract
        return ""
    if attempt.message is None:
        return ""
    run.spend(attempt.message)
    if stop_reason(attempt.message) in (ERROR, ABORTED):
        return ""
    return attempt.message.text.strip()
