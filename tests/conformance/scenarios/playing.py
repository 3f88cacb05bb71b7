"""Takes the steps of a script on a stage, one function for each kind of step.

What the steps are called is `words`'s, what a kill is `killing`'s.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from loopwright import BusyThreadError
from loopwright.ongoing import Ongoing
from loopwright.settings import Limits
from loopwright.testing import Gate, Response
from tests.conformance.scenarios.stage import THREAD, Stage, Stop
from tests.conformance.scenarios.words import TASK, Step

NOTE = "a rather long note"


class StuckError(Exception):
    """The runtime is not where a script needs it to be, or lacks what the script needs."""


async def play(stage: Stage, script: Sequence[Step]) -> None:
    """Take the steps one after the other. Raises StuckError."""
    for step in script:
        await STEPS[step.kind](stage, step.text)


async def put(stage: Stage, text: str, into: Callable[[str], None]) -> None:
    """A message goes into a queue, at whatever point the run stands."""
    into(text)
    stage.record.given.append(text)
    if stage.over or stage.at("agent_end"):
        stage.record.late.append(text)


async def user(stage: Stage, text: str) -> None:
    """A prompt, behind a run that is about to end; one that comes earlier is queued."""
    if stage.ending:
        await stage.finish()
    try:
        await stage.start(lambda: stage.agent.prompt(text))
    except BusyThreadError:
        await put(stage, text, stage.agent.follow_up)
    else:
        stage.record.given.append(text)


async def steer(stage: Stage, text: str) -> None:
    """A steering message."""
    await put(stage, text, stage.agent.steer)


async def follow_up(stage: Stage, text: str) -> None:
    """A follow-up message."""
    await put(stage, text, stage.agent.follow_up)


async def begin(stage: Stage, text: str) -> None:
    """A prompt, unless a run is going on."""
    if stage.over or stage.ending:
        await user(stage, TASK)


async def _ask(stage: Stage, reply: Response | None, what: str) -> None:
    """The model answers the request that the run comes to."""
    if not await stage.advance("request"):
        raise StuckError(f"{what}: the model is not asked, no run is going on")
    stage.reply = reply
    stage.let_go()


async def call(stage: Stage, ids: str) -> None:
    """The model calls the tool once for each id; returns inside the tool."""
    made: list[tuple[str, str, Any]] = [(id, "work", {}) for id in ids.replace(",", " ").split()]
    stage.batch, stage.entered = len(made), 0
    await _ask(stage, Response(calls=made), f"model:call {ids}")
    await stage.until(
        lambda: stage.in_tools or stage.at("request", "answered", "agent_end") or stage.over
    )


async def final(stage: Stage, text: str) -> None:
    """The model answers without calls; returns behind the last token. Not needed if not asked."""
    if await stage.advance("request"):
        await _ask(stage, Response(text=text) if text else None, "model:final")
        await stage.until(lambda: stage.at("answered", "agent_end") or stage.over)


async def half_call(stage: Stage, id: str) -> None:
    """The model has said half of the arguments of a call."""
    await _half(stage, Response(calls=[(id, "work", {"note": NOTE})]), 2)


async def half_text(stage: Stage, text: str) -> None:
    """The model has said half of its answer."""
    await _half(stage, Response(text=["half an ", "answer"]), 1)


async def _half(stage: Stage, answer: Response, pieces: int) -> None:
    gate = Gate()
    reply = replace(answer, wait_for=gate, wait_after=pieces)
    await _ask(stage, reply, "half an answer")
    await gate.reached()
    stage.hold(Stop("stream", gate=gate))


async def tools_start(stage: Stage, id: str) -> None:
    """The bodies of the batch have been entered."""
    inside = [stop.call for stop in stage.held if stop.point == "tool"]
    if not inside or (id and id not in inside):
        raise StuckError(f"tools_start {id}: the tools that wait are {inside}")


async def tools_end(stage: Stage, id: str) -> None:
    """All bodies of the batch are about to return; with an id, the call of this id has ended."""
    if not stage.batch and not stage.alive:
        raise StuckError(f"tools_end {id}: no tool was called")
    if id:
        await _end_of(stage, id)
        return
    while not (stage.over or stage.at("request", "agent_end")):
        if stage.in_tools and not stage.at("tool") and stage.entered >= stage.batch:
            return
        stage.let_go("tool_end" if stage.at("tool") else "")
        await stage.until(lambda: stage.in_tools or stage.at("request", "agent_end") or stage.over)


async def _end_of(stage: Stage, id: str) -> None:
    while id in stage.alive and not stage.over:
        for stop in [stop for stop in stage.held if stop.call == id]:
            stage.held.remove(stop)
            stop.gate.open()
        await stage.until(
            lambda: id not in stage.alive or any(s.call == id for s in stage.held) or stage.over
        )


async def drain(stage: Stage, text: str) -> None:
    """The queue has just been read: the next request is about to be made, or the run to end."""
    await stage.advance("request", "agent_end")


async def abort(stage: Stage, text: str) -> None:
    """The user cancels; on an idle thread that does nothing."""
    await stage.cancel()


async def continue_(stage: Stage, text: str) -> None:
    """The user wants the thread to go on, with whichever call the runtime has for it."""
    await _carry_on(stage, stage.agent.continue_, stage.agent.resume)


async def resume(stage: Stage, text: str) -> None:
    """The run that died or waits is carried on; behind one that has ended, the thread goes on."""
    await _carry_on(stage, stage.agent.resume, stage.agent.continue_)


async def _carry_on(stage: Stage, *ways: Callable[[], Ongoing]) -> None:
    await stage.finish()
    told = list(stage.record.refusals)
    for way in ways:
        await stage.start(way)
        if not stage.refused:
            stage.record.refusals = told
            return


async def idle(stage: Stage, text: str) -> None:
    """The run is over."""
    await stage.finish()


async def max_turns(stage: Stage, number: str) -> None:
    """The limit of the runs from the next one on."""
    stage.agent.settings = replace(stage.agent.settings, limits=Limits(turns=int(number)))


async def graph_stream(stage: Stage, number: str) -> None:
    """Someone reads some events of the graph's own stream and closes it."""
    config: Any = {"configurable": {"thread_id": THREAD}}
    given = {"messages": TASK}
    await _read(stage, stage.agent.graph.astream(given, config, stream_mode="custom"), number)
    stage.free = False


async def agent_stream(stage: Stage, number: str) -> None:
    """Someone reads some events of `Agent.stream` and leaves; the run goes on without them."""
    await _read(stage, stage.agent.stream(TASK), number)
    await stage.agent.wait_for_idle()
    stage.free = False


async def _read(stage: Stage, events: AsyncIterator[Any], number: str) -> None:
    """Read so many events, or all if they are fewer, and close; nothing holds the run up."""
    stage.free, stage.reply = True, Response(calls=[("c1", "work", {})])
    stage.record.given.append(TASK)
    for _ in range(int(number)):
        if await anext(events, None) is None:
            break
    close: Any = events
    await close.aclose()


async def needs(stage: Stage, what: str) -> None:
    """Something that the runtime does not have."""
    raise StuckError(f"needs {what}, which the runtime does not have")


STEPS: dict[str, Callable[[Stage, str], Awaitable[None]]] = {
    "user": user,
    "steer": steer,
    "follow_up": follow_up,
    "begin": begin,
    "call": call,
    "final": final,
    "half_call": half_call,
    "half_text": half_text,
    "tools_start": tools_start,
    "tools_end": tools_end,
    "drain": drain,
    "abort": abort,
    "continue": continue_,
    "resume": resume,
    "idle": idle,
    "max_turns": max_turns,
    "graph_stream": graph_stream,
    "agent_stream": agent_stream,
    "needs": needs,
}
