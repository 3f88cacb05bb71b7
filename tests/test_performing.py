"""A tool's body runs between two notes: not before the first, and it is told after the second."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command, interrupt

from loopwright import failpoints
from loopwright.hooks import AfterToolCall, Hooks
from loopwright.settings import Settings
from loopwright.state.journal import Journal, Known, look_up
from loopwright.state.log import MemoryLog
from loopwright.state.messages import calls
from loopwright.testing.gate import Gate
from loopwright.tools.contract import ToolContext, ToolResult
from tests.support.batches import batch, calling, tool
from tests.support.graphs import outline, rig
from tests.support.states import Scene, scene
from tests.support.tasks import no_task_left

pytestmark = pytest.mark.anyio

SEQUENTIAL = Settings(tool_execution="sequential")


class TracedLog(MemoryLog):
    """Writes down what is noted, among what tools and events write down themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[str] = []
        self.gate: Gate | None = None
        self.polls = 0

    async def commit(
        self, thread: str, kind: str, bodies: Sequence[Any], **options: Any
    ) -> list[int]:
        return await asyncio.shield(asyncio.ensure_future(self._slowly(thread, kind, bodies)))

    async def _slowly(self, thread: str, kind: str, bodies: Sequence[Any]) -> list[int]:
        if self.gate is not None and bodies[0]["fate"] == "finished":
            await self.gate.wait()
        self.trace.append(" ".join(f"{body['fate']}:{body['call']}" for body in bodies))
        return self.append_all(thread, kind, bodies)

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Any]:
        self.polls += 1
        return await super().poll(thread, kinds, after)


PLACES: tuple[failpoints.Place, ...] = ("before_effect", "after_effect", "journal")


@pytest.fixture
def log() -> Iterator[TracedLog]:
    log = TracedLog()
    for place in PLACES:
        failpoints.arm(place, partial(log.trace.append, place))
    yield log
    for place in PLACES:
        failpoints.arm(place, None)


def traced(log: TracedLog, *effects: str, **fields: Any) -> Scene:
    """A scene whose tools `a`, `b`, ... have these effects and write down that they run."""

    def runs(arguments: Any, context: ToolContext) -> str:
        log.trace.append(f"body:{context.call_id}")
        return "done"

    tools = [tool(name, runs, effects=effect) for name, effect in zip("abc", effects, strict=False)]
    made = scene(tools=tools, log=log, **fields)
    made.run.answer = "a"  # the run has added the message itself
    made.run.dependencies.listeners.add(
        lambda event: (
            log.trace.append(f"end:{event.tool_call_id}")
            if event.type == "tool_execution_end"
            else None
        )
    )
    return made


async def fates(log: MemoryLog, *names: str) -> dict[str, str]:
    known: Known = (await look_up(log, "t", ["a"]))["a"]
    return {call.id: known.fate(call).kind for call in calls(calling(*names))}


async def test_a_call_is_noted_before_its_body_and_before_its_end_is_told(log: TracedLog) -> None:
    await batch(traced(log, "unsafe"), calling("a"))
    assert log.trace == [
        "started:c1",
        "before_effect",
        "body:c1",
        "after_effect",
        "finished:c1",
        "journal",
        "end:c1",
    ]
    assert log.polls == 0


async def test_calls_side_by_side_start_in_one_commit_and_finish_in_their_own(
    log: TracedLog,
) -> None:
    await batch(traced(log, "idempotent", "none"), calling("a", "b", "nothing"))
    notes = [line for line in log.trace if ":c" in line and not line.startswith(("body", "end"))]
    assert notes == ["finished:c3 started:c1 started:c2", "finished:c1", "finished:c2"]
    assert log.trace.index(notes[0]) < log.trace.index("body:c1")


async def test_calls_one_after_the_other_are_noted_one_by_one(log: TracedLog) -> None:
    await batch(traced(log, "none", "unsafe", settings=SEQUENTIAL), calling("a", "b"))
    assert [line for line in log.trace if ":" in line] == [
        "started:c1",
        "body:c1",
        "finished:c1",
        "end:c1",
        "started:c2",
        "body:c2",
        "finished:c2",
        "end:c2",
    ]


@pytest.mark.parametrize(
    ("settings", "called"), [(Settings(), ["a", "a", "nothing"]), (SEQUENTIAL, ["a"])]
)
async def test_a_batch_without_effects_notes_nothing(
    log: TracedLog, settings: Settings, called: list[str]
) -> None:
    await batch(traced(log, "none", settings=settings), calling(*called))
    assert not any("started" in line or "finished" in line for line in log.trace)
    assert log.polls == 0


async def test_each_result_of_a_sequence_is_noted_because_it_is_told_before_the_batch_is_stored(
    log: TracedLog,
) -> None:
    await batch(traced(log, "none", settings=SEQUENTIAL), calling("a", "a"))
    assert [line for line in log.trace if line.startswith("finished")] == [
        "finished:c1",
        "finished:c2",
    ]


async def test_a_run_that_nothing_keeps_notes_nothing(log: TracedLog) -> None:
    made = traced(log, "unsafe")
    made.run.kept, made.run.answer = False, None
    await batch(made, calling("a"))
    assert log.trace == ["before_effect", "body:c1", "after_effect", "end:c1"]
    assert log.polls == 0


async def test_the_whole_result_is_noted_as_the_hook_leaves_it(log: TracedLog) -> None:
    result = ToolResult(
        content="raw", details={"n": 1}, messages=(HumanMessage("extra", id="x"),), terminate=True
    )
    hooks = Hooks(after_tool_call=lambda context: AfterToolCall(content="tidy", is_error=True))
    made = scene(tools=[tool("a", result)], log=log, hooks=hooks)
    update = await batch(made, calling("a"))
    first = list(made.run.appended)
    again = scene(tools=[tool("a", ValueError("runs again"))], log=log)
    assert await batch(again, calling("a")) == update
    assert again.run.appended == first  # with the same ids
    assert outline(first) == ["c1: tidy", "user: extra"]


async def test_what_the_hook_adds_can_be_stored(log: TracedLog) -> None:
    changed = AfterToolCall(content="\ud800", details={"o": object()}, usage={"n": 2**70})
    made = scene(tools=[tool("a")], log=log, hooks=Hooks(after_tool_call=lambda context: changed))
    await batch(made, calling("a"))
    (result,) = made.run.appended
    assert isinstance(result, ToolMessage)
    assert result.content == "\ufffd"
    assert "left out" in result.artifact["note"]
    assert result.additional_kwargs == {"usage": {"n": str(2**70)}}


async def test_a_commit_that_fails_keeps_the_body_from_running(log: TracedLog) -> None:
    class BrokenLog(TracedLog):
        async def commit(self, *given: Any, **options: Any) -> list[int]:
            raise OSError("disk full")

    broken = BrokenLog()
    made = traced(broken, "unsafe")
    with pytest.raises(OSError, match="disk full"):
        await batch(made, calling("a", "a"))
    assert (broken.trace, made.run.appended) == ([], [])


# ---- a task that is cancelled from outside


async def test_a_result_that_is_being_noted_is_not_lost(log: TracedLog) -> None:
    async with no_task_left():
        log.gate = Gate()
        task = asyncio.ensure_future(batch(traced(log, "unsafe"), calling("a")))
        await log.gate.reached()
        task.cancel()
        log.gate.open()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await fates(log, "a") == {"c1": "finished"}
    assert "end:c1" not in log.trace


@pytest.mark.parametrize("settings", [Settings(), SEQUENTIAL], ids=["parallel", "sequential"])
async def test_a_result_that_is_there_when_the_cancel_comes_is_noted(
    log: TracedLog, settings: Settings
) -> None:
    made = traced(log, "unsafe", settings=settings)
    async with no_task_left():
        task = asyncio.ensure_future(batch(made, calling("a")))
        failpoints.arm("after_effect", lambda: (task.cancel(), None)[1])
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await fates(log, "a") == {"c1": "finished"}


async def test_what_has_finished_beside_a_call_that_is_cut_off_is_noted(log: TracedLog) -> None:
    gate = Gate()

    async def endless(arguments: Any, context: ToolContext) -> str:
        await gate.wait()
        return "never"

    noted = asyncio.Event()
    failpoints.arm("journal", noted.set)
    made = scene(tools=[tool("a", "done"), tool("b", endless)], log=log)
    async with no_task_left():
        task = asyncio.ensure_future(batch(made, calling("a", "b")))
        await gate.reached()
        await noted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await fates(log, "a", "b") == {"c1": "finished", "c2": "started"}
    again = scene(tools=[tool("a", "again"), tool("b", "again")], log=log)
    await batch(again, calling("a", "b"))
    first, second = outline(again.run.appended)
    assert first == "c1: done" and "may have taken effect" in second


# ---- a run that carries a batch on


async def test_an_abort_on_the_way_keeps_what_had_finished(log: TracedLog) -> None:
    await batch(traced(log, "unsafe", "unsafe"), calling("a", "b"))
    made = traced(log, "unsafe", "unsafe", "unsafe", settings=SEQUENTIAL)
    made.run.answer = None
    made.run.signal.abort("enough")
    await batch(made, calling("a", "b", "c"))
    assert outline(made.run.appended) == ["c1: done", "c2: done", "c3: Operation aborted"]


async def test_a_tool_that_is_gone_or_harmless_now_is_judged_as_it_is_now(log: TracedLog) -> None:
    died = Journal(log, "t", "a")
    died.use()
    await died.started(calls(calling("a", "b")))
    made = scene(tools=[tool("b", "fine", effects="idempotent")], log=log)
    await batch(made, calling("a", "b"))
    gone, harmless = outline(made.run.appended)
    assert "may have taken effect" in gone and harmless == "c2: fine"


async def test_a_body_that_asks_in_parts_runs_once_per_answer() -> None:
    log = TracedLog()

    def confirm(arguments: Any, context: ToolContext) -> str:
        return f"told {interrupt('sure?')}"

    made = rig(
        calling("a", "b", "a"), "fine", tools=[tool("a", "done"), tool("b", confirm)], log=log
    )
    assert (await made.run({"messages": "hi"})).status == "interrupted"
    assert (await made.run(Command(resume="yes"))).status == "completed"
    assert outline(await made.ledger())[2:5] == ["c1: done", "c2: told yes", "c3: done"]
    assert log.trace.count("asking:c2") == 2
