"""What a run knows of calls that another one has left: from the journal, and from what was held."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from loopwright.calls import Outcome
from loopwright.recovery import opened, unanswered
from loopwright.settings import Settings
from loopwright.state.journal import Journal
from loopwright.state.messages import Call, calls
from loopwright.state.repair import NOT_EXECUTED, is_interrupted, repair
from loopwright.state.schema import Held
from loopwright.tools.contract import ToolResult
from tests.ledgers import user
from tests.support.batches import calling, tool
from tests.support.graphs import outline
from tests.support.states import Scene, scene, state

pytestmark = pytest.mark.anyio

MESSAGE = calling("a", "b", "c", "d")
HISTORY: list[AnyMessage] = [user("u"), MESSAGE]
A, B, C, D = calls(MESSAGE)


def sent(name: str) -> HumanMessage:
    return HumanMessage(name, id=name)


def finished(call: Call, *extra: str) -> dict[str, Any]:
    result = ToolResult(content=f"{call.id} done", messages=tuple(map(sent, extra)))
    return Outcome(call, result, id=f"result of {call.id}").noted()


async def journaled(made: Scene) -> Journal:
    """`a` has finished, `b` and `c` have started, nothing is known of `d`."""
    journal = Journal(made.run.dependencies.log, "t", str(MESSAGE.id))
    journal.use()
    await journal.started([A, B, C])
    await journal.finished(A, finished(A, "from a"))
    return journal


async def mended(made: Scene, held: Held | None = None) -> list[AnyMessage]:
    known = await unanswered(HISTORY, held, made.run)
    return repair(HISTORY, known.results, known.extra)[0]


async def test_open_calls_get_what_is_known_of_them() -> None:
    made = scene()
    await journaled(made)
    messages = await mended(made)
    results = [m for m in messages if isinstance(m, ToolMessage)]
    assert [(r.id, r.text) for r in results[:1]] == [("result of c1", "c1 done")]
    assert all("may have taken effect" in result.text for result in results[1:3])
    assert results[3].text == NOT_EXECUTED and results[3].status == "error"
    assert [is_interrupted(result) for result in results] == [False, True, True, True]
    assert messages[-1].text == "from a"


async def test_what_parts_of_a_batch_have_stored_comes_first() -> None:
    made = scene()
    await journaled(made)
    stored = ToolMessage("stored", tool_call_id="c1", name="a", id="r")
    held = Held(results=[stored], extra=[sent("kept")], terminate=False)
    lines = outline(await mended(made, held))
    assert lines[2] == "c1: stored"
    assert [line for line in lines if line.startswith("user")] == ["user: hi", "user: kept"]


async def test_a_call_that_is_answered_is_not_looked_up() -> None:
    made = scene()
    answers: list[AnyMessage] = [
        ToolMessage("there", tool_call_id=call.id, name=call.name, id=call.id)
        for call in (A, B, C, D)
    ]
    await journaled(made)
    known = await unanswered([*HISTORY, *answers], None, made.run)
    assert (known.results, known.extra) == ({}, {})


async def test_nothing_is_known_where_nothing_was_kept() -> None:
    made = scene()
    await journaled(made)
    made.run.kept = False
    assert (await unanswered(HISTORY, None, made.run)).results == {}


@pytest.mark.parametrize(
    ("effects", "answer", "held", "in_use"),
    [
        ("none", "a", None, False),
        ("none", None, None, False),
        ("idempotent", "a", None, True),
        ("unsafe", "a", None, True),
        ("none", "a", Held(results=[], extra=[], terminate=True), True),
    ],
)
async def test_a_batch_is_noted_if_it_has_effects_or_goes_on_in_parts(
    effects: str, answer: str | None, held: Held | None, in_use: bool
) -> None:
    made = scene(tools=[tool(name, effects=effects) for name in "abcd"])
    made.run.answer = answer
    batch = await opened(state(HISTORY, held=held), made.run, MESSAGE)
    assert batch.journal.in_use is in_use


async def test_a_batch_with_a_past_knows_it_unless_the_run_has_just_made_it() -> None:
    made = scene(tools=[tool(name, effects="none") for name in "abcd"])
    await journaled(made)
    batch = await opened(state(HISTORY), made.run, MESSAGE)
    assert batch.known.fate(A).kind == "finished" and batch.journal.in_use
    made.run.answer = str(MESSAGE.id)
    batch = await opened(state(HISTORY), made.run, MESSAGE)
    assert batch.known.fate(A).kind == "unknown" and not batch.journal.in_use


@pytest.mark.parametrize("sync", ["normal", "full"])
async def test_the_setting_says_whether_notes_wait_for_the_disk(sync: Any) -> None:
    made = scene(settings=Settings(journal_sync=sync))
    batch = await opened(state(HISTORY), made.run, MESSAGE)
    assert batch.journal.full is (sync == "full")
