"""What the journal knows when a run comes to calls: to carry a batch on, or to answer what is open.

What becomes of a call that it knows is `calls`' business; how a ledger is mended `state.repair`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.calls import Batch, Outcome
from loopwright.runs import Run, context
from loopwright.state.journal import Journal, Known, look_up
from loopwright.state.messages import Call, calls
from loopwright.state.repair import not_executed
from loopwright.state.schema import AgentState, Held, held_results
from loopwright.tools.contract import Tool
from loopwright.watching import needs_order


async def opened(state: AgentState, run: Run, message: AIMessage) -> Batch:
    """The batch with its journal; a message that this run itself has added has no past.

    Every result of the batch is noted if one of its tools has effects, if it had a past, or if its
    calls run one behind the other: each result is told while the next call runs.
    """
    id, log = str(message.id), run.dependencies.log
    known = Known()
    if run.kept and run.answer != id:
        known = (await look_up(log, run.thread, [id]))[id]
    full = run.settings.journal_sync == "full"
    journal = Journal(log if run.kept else None, run.thread, id, full, run.lease)
    batch = calls(message)
    one_by_one = len(batch) > 1 and is_sequential(run, batch)
    if known.fates or state.get("held") is not None or one_by_one or _has_effects(run, batch):
        journal.use()
    return Batch(message, context(state, run), state["system_prompt"], run, journal, known)


def is_sequential(run: Run, batch: Sequence[Call]) -> bool:
    """The policy says so, or a called tool does; a tool cannot lift the policy (S2-04)."""
    forced = any(tool.execution_mode == "sequential" for tool in _tools(run, batch))
    return forced or run.settings.tool_execution == "sequential" or needs_order(run, batch)


def _has_effects(run: Run, batch: Sequence[Call]) -> bool:
    return any(tool.effects != "none" for tool in _tools(run, batch))


def _tools(run: Run, batch: Sequence[Call]) -> list[Tool]:
    offered = run.offered_tools()
    found = [offered.get(call.name) for call in batch]
    return [tool for tool in found if tool is not None]


@dataclass(frozen=True)
class Recovered:
    """By call id: results of open calls, and messages that tools sent along to stand behind them.

    A call that is not in here may have taken effect.
    """

    results: dict[str, ToolMessage] = field(default_factory=dict)
    extra: dict[str, Sequence[AnyMessage]] = field(default_factory=dict)


async def unanswered(history: Sequence[AnyMessage], held: Held | None, run: Run) -> Recovered:
    """What the held results and the journal make of the open calls; one look-up if there are any.

    A call of which the journal knows that it never started is answered so. One that has only
    started, or that nothing is known of, is left out.
    """
    open_calls = _open_calls(history)
    found = Recovered()
    if run.kept and open_calls:
        known = await look_up(run.dependencies.log, run.thread, list(open_calls))
        for message_id, waiting in open_calls.items():
            for call in waiting:
                fate = known[message_id].fate(call)
                if fate.kind == "finished":
                    outcome = Outcome.of(call, fate)
                    found.results[call.id] = outcome.message()
                    found.extra[call.id] = outcome.result.messages
                elif fate.kind == "not_started":
                    found.results[call.id] = not_executed(call)
    return _with_held(found, open_calls, held)


def _with_held(found: Recovered, open_calls: dict[str, list[Call]], held: Held | None) -> Recovered:
    """What a batch that is run in parts has stored goes before the journal's word on it."""
    if held is None:
        return found
    results = held_results(held)
    extra = {id: sent for id, sent in found.extra.items() if id not in results}
    last = [call.id for waiting in open_calls.values() for call in waiting][-1:]
    for id in last:  # its batch is the last one; `held` does not say which call sent what
        extra[id] = [*held["extra"], *extra.get(id, ())]
    return Recovered({**found.results, **results}, extra)


def _open_calls(history: Sequence[AnyMessage]) -> dict[str, list[Call]]:
    """The calls that nothing answers, by the id of their message."""
    answered = {m.tool_call_id for m in history if isinstance(m, ToolMessage)}
    found = {str(m.id): [c for c in calls(m) if c.id not in answered] for m in history}
    return {id: waiting for id, waiting in found.items() if waiting}
