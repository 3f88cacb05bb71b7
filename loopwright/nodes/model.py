"""The node that asks the model: one request, one complete assistant message in the ledger.

How a server is spoken to lives in `providers`; what the answer leads to is the edge's.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.budgets import drawn, refunding
from loopwright.cancelling import until_cut
from loopwright.errors import ContextOverflowError, ModelError
from loopwright.events import MessageStart, MessageUpdate
from loopwright.failpoints import reach
from loopwright.hooks import KeptContext, settled
from loopwright.limits import CALLS, announced
from loopwright.planning import speaking, with_plan
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEnd,
    StreamEvent,
    StreamPiece,
    StreamStart,
)
from loopwright.providers.protocol import bounds_answers, checked
from loopwright.runs import Run, Update, changed, context
from loopwright.signals import Aborted
from loopwright.spending import added, usage_of
from loopwright.state.call_ids import with_own_call_ids
from loopwright.state.messages import ERROR, failure, new_id
from loopwright.state.schema import AgentState, Decision, View
from loopwright.unfinished import AnswerKind, kind_of, visible


async def model(state: AgentState, run: Run) -> Update:
    """Ask once. Writes `tools`, `satisfied`, `empty`, `cut`, `hard_stop`, `compact`, or `stopped`
    if the run was cut.

    An answer with calls leads to `tools` whatever its stop reason, except error and aborted
    (S2-05).
    A context overflow leads to one compaction and one more request, with nothing emitted or
    appended; a second one is a failed answer.
    """
    name, _ = speaking(state, run)
    provider = run.dependencies.resolve(name)
    messages, kept = await _transformed(state, run)
    request = await _request(state, run, provider, messages)
    if not await drawn(state, run):
        return {**kept, "decision": Decision(kind="stopped", reason=CALLS)}
    try:
        message, kind = await refunding(state, run, _answer(state, provider, request, run))
    except Aborted:  # the run was cut: nothing of the answer is kept
        return {**kept, "decision": Decision(kind="stopped", reason="aborted")}
    except ContextOverflowError as error:
        if not state["run"]["overflow"]:
            record = changed(state["run"], overflow=True)
            return {**kept, "decision": Decision(kind="compact"), "run": record}
        message, kind = failure(str(error), kind=error.kind, reason=ERROR, model=name), "hard_stop"
        await run.append(message)
    return {
        **kept,
        "decision": Decision(kind=kind),
        "run": changed(state["run"], overflow=False),
        "usage": added(state.get("usage") or {}, usage_of([message])),
    }


async def _transformed(state: AgentState, run: Run) -> tuple[list[AnyMessage], dict[str, View]]:
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
    """Convert, then ask for the key (S2-03)."""
    hooks = run.dependencies.hooks
    converted: list[AnyMessage] = await settled(hooks.convert_to_llm(messages))
    key: str | None = None
    if hooks.get_api_key is not None:
        key = await settled(hooks.get_api_key(provider.id))
    name, tools = speaking(state, run)
    return ModelRequest(
        model=name,
        system_prompt=with_plan(state, run),
        messages=announced(state, run, converted),
        tools=tools.tools,
        thinking_level=run.settings.thinking_level,
        api_key=key or None,
        id=f"request-{run.settings.request_offset + state['run']['turn']:03}",
        signal=run.signal,
        session=run.thread,
        foreign_thinking=run.settings.foreign_thinking,
    )


@dataclass
class _Stream:
    """The answer that is coming in: its id, and whether its start was emitted."""

    run: Run
    provider: Provider
    model: str
    id: str = field(default_factory=new_id)
    started: bool = False

    async def tell(self, event: StreamEvent) -> None:
        """Emit what belongs to a start or a piece; pieces before a start are dropped (S2)."""
        if isinstance(event, StreamStart) and not self.started:
            self.started = True
            self.id = str(self.run.identify(AIMessage("", id=event.message_id)).id)
            metadata = {"model": self.model, "provider": self.provider.id}
            partial = AIMessage("", id=self.id, response_metadata=metadata)
            await self.run.emit(MessageStart(message=partial))
        elif isinstance(event, StreamPiece) and self.started:
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

    async def end(self, message: AIMessage) -> AIMessage:
        """Append the final message; what it says wins over the pieces.

        It has the id of its start, and call ids that no call of the ledger has.
        """
        id = self.id if self.started else self.run.identify(message).id
        final = message if message.id == id else message.model_copy(update={"id": id})
        final = self.run.priced(final)
        final = with_own_call_ids(final, set() if self.run.ids is None else self.run.ids.calls)
        await (self.run.complete(final) if self.started else self.run.append(final))
        return final


async def _answer(
    state: AgentState, provider: Provider, request: ModelRequest, run: Run
) -> tuple[AIMessage, AnswerKind]:
    """Stream one answer into events and the ledger. Raises what the provider raises."""
    stream = _Stream(run, provider, request.model)
    async for event in _events(provider, request, run):
        reach("model")
        if isinstance(event, StreamEnd):
            kind = kind_of(state, run, event.message)
            return await stream.end(visible(run, event.message, kind)), kind
        await stream.tell(event)
    raise ModelError(f"the stream of provider {provider.id!r} ended without an answer")


def _events(provider: Provider, request: ModelRequest, run: Run) -> AsyncIterator[StreamEvent]:
    """The events of the answer, with what the settings ask of them."""
    events = provider.stream(request)
    if run.settings.cancel_policy == "cut":
        events = until_cut(run, events)
    if bounds_answers(run.settings):
        used = set() if run.ids is None else run.ids.calls
        events = checked(events, request, run.settings, used)
    return events
