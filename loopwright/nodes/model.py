"""The node that asks the model: one question, one complete assistant message in the ledger.

How often it is asked until it answers is `attempts`, how a server is spoken to lives in
`providers`; what the answer leads to is the edge's.
"""

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.attempts import Attempt, Question, key_for, settings_changed
from loopwright.cancelling import is_cut
from loopwright.errors import ContextOverflowError, ModelError
from loopwright.events import MessageStart, MessageUpdate
from loopwright.hooks import KeptContext, settled
from loopwright.limits import CALLS, announced
from loopwright.planning import held_to, speaking, with_plan
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEvent,
    StreamPiece,
    StreamStart,
)
from loopwright.runs import Run, Update, changed, context
from loopwright.signals import Aborted
from loopwright.spending import added, usage_of
from loopwright.state.call_ids import with_own_call_ids
from loopwright.state.messages import ABORTED, ERROR, failure, new_id
from loopwright.state.schema import AgentState, Decision, View
from loopwright.unfinished import AnswerKind, kind_of, visible


async def model(state: AgentState, run: Run) -> Update:
    """Ask. Writes `tools`, `satisfied`, `empty`, `cut`, `hard_stop`, `compact`, or `stopped` if the
    run was cut.

    An answer with calls leads to `tools` whatever its stop reason, except error and aborted
    (S2-05). Nothing of an attempt in whose place another one is made is kept (K11).
    A context overflow leads to one compaction and one more request, with nothing appended; a second
    one is a failed answer (S1-13).
    """
    messages, kept = await _transformed(state, run)
    converted: list[AnyMessage] = await settled(run.dependencies.hooks.convert_to_llm(messages))
    voided: set[str] = set()
    question = Question(
        state=state,
        run=run,
        prepare=lambda provider: _request(state, run, provider, converted),
        tell=lambda provider: _Voice(run, provider, speaking(state, run)[0], voided),
        retried=state["run"].get("retried", 0),
    )
    try:
        attempt = await question.answer()
    except Aborted:
        if is_cut(run):  # nothing of the answer is kept
            return {**kept, "decision": Decision(kind="stopped", reason="aborted")}
        attempt = Attempt(message=_failed(state, run, None))
    kept |= settings_changed(state, run)
    failed = attempt.failure
    if attempt.message is None and failed is None:  # no request was granted
        return {**kept, "decision": Decision(kind="stopped", reason=CALLS)}
    if isinstance(failed, ContextOverflowError) and not state["run"]["overflow"]:
        await question.retract(failed)
        record = changed(state["run"], overflow=True, retried=question.retried)
        return {**kept, "decision": Decision(kind="compact"), "run": record}
    message, kind = await _ended(state, run, attempt)
    return {
        **kept,
        "decision": Decision(kind=kind),
        "run": changed(state["run"], overflow=False, retried=0),
        "usage": added(state.get("usage") or {}, usage_of([message])),
    }


async def _transformed(state: AgentState, run: Run) -> tuple[list[AnyMessage], dict[str, Any]]:
    """What the hook makes of the context: for this request, and as the view if it is to last."""
    hook, messages = run.dependencies.hooks.transform_context, context(state, run)
    if hook is None:
        return messages, {}
    answer: list[AnyMessage] | KeptContext = await settled(hook(messages, run.signal))
    if not isinstance(answer, KeptContext):
        return list(answer), {}
    size = len(state["messages"])
    view = View(head=list(answer.messages), start=size, measured_from=size)
    return list(answer.messages if answer.request is None else answer.request), {"view": view}


async def _request(
    state: AgentState, run: Run, provider: Provider, messages: list[AnyMessage]
) -> ModelRequest:
    """The request for messages that are converted; now the key is asked for (S2-03)."""
    name, tools = speaking(state, run)
    return ModelRequest(
        model=name,
        system_prompt=with_plan(state, run),
        messages=announced(state, run, list(messages)),
        tools=tools.tools,
        thinking_level=run.settings.thinking_level,
        api_key=await key_for(run, provider),
        id=f"request-{run.settings.request_offset + state['run']['turn']:03}",
        patience=run.settings.stall_timeout,
        clock=run.dependencies.clock,
        output=held_to(state, run),
        signal=run.signal,
        session=run.thread,
        foreign_thinking=run.settings.foreign_thinking,
    )


@dataclass
class _Voice:
    """The answer of one attempt as it comes in: its id, and whether its start was emitted.

    `voided` are the ids of the attempts before it: none is used twice.
    """

    run: Run
    provider: Provider
    model: str
    voided: set[str]
    id: str = field(default_factory=new_id)
    begun: str | None = None

    async def tell(self, event: StreamEvent) -> None:
        """Emit what belongs to a start or a piece; pieces before a start are dropped (S2)."""
        if isinstance(event, StreamStart) and self.begun is None:
            self.begun = self.id = self._named(event.message_id)
            metadata = {"model": self.model, "provider": self.provider.id}
            partial = AIMessage("", id=self.id, response_metadata=metadata)
            await self.run.emit(MessageStart(message=partial))
        elif isinstance(event, StreamPiece) and self.begun is not None:
            await self.run.emit(
                MessageUpdate(
                    message_id=self.id,
                    update=event.kind,
                    index=event.index,
                    delta=event.delta,
                    tool_call_id=event.tool_call_id,
                    tool_name=event.tool_name,
                )
            )

    def _named(self, given: str | None) -> str:
        id = None if given in self.voided else given
        id = str(self.run.identify(AIMessage("", id=id)).id)
        self.voided.add(id)
        return id


async def _ended(state: AgentState, run: Run, attempt: Attempt) -> tuple[AIMessage, AnswerKind]:
    """Append the final message, whose word wins over the pieces, and say what it leads to.

    It has the id of its start, and call ids that no call of the ledger has.
    """
    message = attempt.message
    if message is None:
        message = _failed(state, run, attempt.failure)
    kind = kind_of(state, run, message)
    message = visible(run, message, kind)
    begun = attempt.told.begun
    id = begun or run.identify(message).id
    final = message if message.id == id else message.model_copy(update={"id": id})
    final = run.priced(final)
    final = with_own_call_ids(final, set() if run.ids is None else run.ids.calls)
    await (run.complete(final) if begun else run.append(final))
    return final, kind


def _failed(state: AgentState, run: Run, error: ModelError | None) -> AIMessage:
    """The answer in place of one that was never begun."""
    name, _ = speaking(state, run)
    if error is None or run.signal.aborted:
        return failure("Request was aborted", kind=ABORTED, reason=ABORTED, model=name)
    return failure(str(error), kind=error.kind, reason=ERROR, model=name)
