"""The node that runs the calls of one assistant message and appends a result for each.

What one call goes through lives in `calls` and `performing`, how a person is asked in `approvals`.
"""

import asyncio
from collections.abc import Sequence
from copy import deepcopy

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from loopwright.approvals import asked
from loopwright.calls import (
    Asking,
    Batch,
    Outcome,
    Prepared,
    end,
    is_kept,
    prepare,
    recalled,
    refused,
    start,
)
from loopwright.cancelling import unless_cut
from loopwright.performing import announce, perform
from loopwright.recovery import is_sequential, opened
from loopwright.runs import Run, Update
from loopwright.signals import Aborted
from loopwright.state.messages import LENGTH, Call, calls, stop_reason
from loopwright.state.repair import interrupted
from loopwright.state.schema import AgentState, Decision, Held, held_results
from loopwright.turns import last_turn
from loopwright.watching import follow

Ready = Prepared | Asking | Outcome


async def tool_batch(state: AgentState, run: Run) -> Update:
    """Answer every call that has no result yet.

    Writes `again`, `satisfied` if every result of the batch asks to end the run (S2-06), or `tools`
    if the batch goes on in parts. Results join the ledger in source order. Calls of an answer cut
    off by `length` are refused without running or asking a hook, and never end the run (S2-05).

    What the calls do is noted in the journal if one of their tools has effects, or a person is
    asked. A run that carries on a batch uses what was noted, and runs nothing twice.
    """
    follow(state, run)
    message, results = last_turn(state["messages"])
    held = state.get("held")
    answered = {result.tool_call_id for result in results}
    answered |= set(held_results(held))
    waiting = [call for call in calls(message) if call.id not in answered]
    batch = await opened(state, run, message)
    try:
        return await _answers(batch, waiting, held)
    except Aborted:  # the run was cut: what has joined the ledger is all there will be
        return {"decision": Decision(kind="again")}


async def _answers(batch: Batch, waiting: Sequence[Call], held: Held | None) -> Update:
    message, run = batch.message, batch.run
    if stop_reason(message) == LENGTH:
        return await _cut_off(batch, waiting)
    if held is not None:
        return await _part(batch, waiting, held)
    run_all = _sequential if is_sequential(run, waiting) else _parallel
    try:
        return await run_all(batch, waiting)
    except GraphBubbleUp:
        raise
    except Exception:
        await _keep_finished(batch, waiting)
        raise


async def _cut_off(batch: Batch, waiting: Sequence[Call]) -> Update:
    for call in waiting:
        await start(batch, call)
        text = batch.run.dependencies.wording.cut_off.format(name=call.name)
        outcome = await end(batch, refused(call, text))
        await batch.run.append(outcome.message())
    return {"decision": Decision(kind="again")}


async def _sequential(batch: Batch, waiting: Sequence[Call]) -> Update:
    """One call after the other, each with its result message; an abort ends the batch.

    A call that asks is asked about when its turn has come. If others have run before it, their
    results are stored first: the batch goes on in parts.
    """
    outcomes: list[Outcome] = []
    for call in waiting:
        try:
            outcome = await _alone(batch, call, may_ask=not outcomes)
        except GraphBubbleUp:
            if not outcomes:
                raise
            outcome = None
        if outcome is None:
            held = Held(results=[], extra=_extra(outcomes), terminate=_all_terminate(outcomes))
            return {"decision": Decision(kind="tools"), "held": held}
        outcomes.append(outcome)
        await batch.run.append(outcome.message(), stored=is_kept(batch, call))
        if batch.run.signal.aborted:
            break
    await _close(batch, waiting[len(outcomes) :], _extra(outcomes))
    return {"decision": _verdict(_all_terminate(outcomes))}


async def _alone(batch: Batch, call: Call, *, may_ask: bool) -> Outcome | None:
    """One call from start to end; None if it has to ask and may not do it now."""
    ready = await _prepared(batch, call)
    if isinstance(ready, Asking):
        if not may_ask:
            return None
        ready = (await asked(batch, [ready]))[call.id]
    if isinstance(ready, Outcome):
        await batch.journal.catch_up()  # it is told while the next call runs
        return await end(batch, ready)
    await announce(batch, [ready])
    return await perform(batch, ready)


async def _prepared(batch: Batch, call: Call) -> Ready:
    """Tell that a call is looked at, and look at it. Raises Aborted in a run that is cut."""
    unless_cut(batch.run)
    await start(batch, call)
    unless_cut(batch.run)
    ready = await prepare(batch, call)
    unless_cut(batch.run)
    return ready


async def _part(batch: Batch, waiting: Sequence[Call], held: Held) -> Update:
    """The next call of a batch that is run in parts; with the last one all results join."""
    outcome = await _next_part(batch, waiting[0], held)
    held = Held(
        results=[*held["results"], outcome.message()],
        extra=[*held["extra"], *outcome.result.messages],
        terminate=held["terminate"] and outcome.result.terminate is True,
        approved=held.get("approved", {}),
    )
    if len(waiting) > 1 and not batch.run.signal.aborted:
        return {"decision": Decision(kind="tools"), "held": held}
    order = [call.id for call in calls(batch.message)]
    for message in sorted(held["results"], key=lambda result: order.index(result.tool_call_id)):
        await batch.run.append(message)
    await _close(batch, waiting[1:], held["extra"])
    return {"decision": _verdict(held["terminate"]), "held": None}


async def _next_part(batch: Batch, call: Call, held: Held) -> Outcome:
    """One call of such a batch; what a person has approved already is not asked again."""
    approved, tool = held.get("approved", {}), batch.run.offered_tools().get(call.name)
    if call.id in approved and tool is not None and recalled(batch, call) is None:
        await start(batch, call)
        prepared = Prepared(call, tool, deepcopy(approved[call.id]))
        await announce(batch, [prepared])
        return await perform(batch, prepared)
    outcome = await _alone(batch, call, may_ask=True)
    assert outcome is not None
    return outcome


async def _parallel(batch: Batch, waiting: Sequence[Call]) -> Update:
    """Prepare all in source order, ask once for all that ask, then launch all bodies.

    A call that fails in preparation is told at once. An abort in the preparation of a call ends the
    batch behind it. A body that interrupts the run is left for the next superstep, alone.
    """
    ready: list[Ready] = []
    for call in waiting:
        prepared = await _prepared(batch, call)
        ready.append(await end(batch, prepared) if isinstance(prepared, Outcome) else prepared)
        if batch.run.signal.aborted:
            break
    settled = await _answered(batch, ready)
    await announce(batch, settled)
    bodies = await _all_settled(batch, settled)
    outcomes = [body for body in bodies if isinstance(body, Outcome)]
    failures = [body for body in bodies if isinstance(body, Exception)]
    if failures and all(isinstance(failure, GraphBubbleUp) for failure in failures):
        if len(bodies) == 1:
            raise failures[0]
        return {"decision": Decision(kind="tools"), "held": _held(outcomes, ready, settled)}
    if failures:
        raise next(failure for failure in failures if not isinstance(failure, GraphBubbleUp))
    for outcome in outcomes:
        await batch.run.append(outcome.message())
    await _close(batch, waiting[len(outcomes) :], _extra(outcomes))
    return {"decision": _verdict(_all_terminate(outcomes))}


async def _answered(batch: Batch, ready: Sequence[Ready]) -> list[Prepared | Outcome]:
    """The batch with every ask settled; rejections are told before the first body starts.

    A run that was aborted meanwhile asks nobody: its calls will be refused, not run.
    """
    if batch.run.signal.aborted:
        return [item.unasked() if isinstance(item, Asking) else item for item in ready]
    asking = [item for item in ready if isinstance(item, Asking)]
    answers = await asked(batch, asking) if asking else {}
    settled: list[Prepared | Outcome] = []
    for item in ready:
        if isinstance(item, Asking):
            answer = answers[item.call.id]
            if isinstance(answer, Outcome):
                batch.journal.refused(item.call, answer.noted())
                await end(batch, answer)
            item = answer
        settled.append(item)
    return settled


async def _all_settled(
    batch: Batch, ready: Sequence[Prepared | Outcome]
) -> list[Outcome | BaseException]:
    """Run the prepared calls side by side; none is left running when this returns or raises."""
    bodies = [
        asyncio.create_task(perform(batch, item)) if isinstance(item, Prepared) else item
        for item in ready
    ]
    tasks = [body for body in bodies if isinstance(body, asyncio.Task)]
    try:
        if tasks:
            await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return [
        (body.exception() or body.result()) if isinstance(body, asyncio.Task) else body
        for body in bodies
    ]


async def _keep_finished(batch: Batch, waiting: Sequence[Call]) -> None:
    """Store what has finished when a call, a listener or the log failed, and mark what did not;
    policy `cut` marks nothing, `leave` leaves all.
    """
    policy = batch.run.settings.cancel_policy
    done = [at for at, call in enumerate(waiting, 1) if call.id in batch.outcomes]
    if policy == "leave" or not done:
        return
    stored = {m.tool_call_id for m in batch.run.appended if isinstance(m, ToolMessage)}
    for call in [call for call in waiting[: done[-1]] if call.id not in stored]:
        if outcome := batch.outcomes.get(call.id):
            await batch.run.append(outcome.message())
        elif policy == "record":
            await batch.run.append(interrupted(call))


def _held(
    outcomes: Sequence[Outcome], ready: Sequence[Ready], settled: Sequence[Prepared | Outcome]
) -> Held:
    """What a parallel batch hands to the supersteps of the calls that interrupt in their bodies."""
    return Held(
        results=[outcome.message() for outcome in outcomes],
        extra=_extra(outcomes),
        terminate=all(outcome.result.terminate is True for outcome in outcomes),
        approved={
            answer.call.id: answer.arguments
            for item, answer in zip(ready, settled, strict=True)
            if isinstance(item, Asking) and isinstance(answer, Prepared)
        },
    )


def _extra(outcomes: Sequence[Outcome]) -> list[AnyMessage]:
    """What the tools sent along, to stand behind all results of the batch (S1-06)."""
    return [message for outcome in outcomes for message in outcome.result.messages]


def _all_terminate(outcomes: Sequence[Outcome]) -> bool:
    """Whether there are results and every one asks to end the run (S2-06)."""
    return bool(outcomes) and all(outcome.result.terminate is True for outcome in outcomes)


def _verdict(terminate: bool) -> Decision:
    return Decision(kind="satisfied" if terminate else "again")


async def _close(batch: Batch, unstarted: Sequence[Call], extra: Sequence[AnyMessage]) -> None:
    """Answer the calls that an abort kept from starting, if the policy says so (K1, K24); then add
    what tools sent along.
    """
    run, closed = batch.run, list[Outcome]()
    if run.settings.cancel_policy == "record":
        aborted = run.dependencies.wording.aborted
        closed = [recalled(batch, call) or refused(call, aborted) for call in unstarted]
    for outcome in closed:
        await run.append(outcome.message())
    for message in [*extra, *_extra(closed)]:
        await run.append(message)
