"""The node that makes room: a summary is shown instead of the older part, nothing is deleted."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.errors import ContextOverflowError
from loopwright.events import Compaction
from loopwright.nodes.compact import INSTRUCTION, compact
from loopwright.settings import Settings
from loopwright.state.schema import View
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig, told
from tests.support.providers import Scripted, said
from tests.support.states import Scene, record, scene, state

LONG: list[AnyMessage] = [
    user("u1", "x" * 400),
    answer("a1", "c1"),
    result("r1", "c1"),
    user("u2"),
    answer("a2", "c2"),
    result("r2", "c2"),
]
KEEP_TWO = Settings(compaction_tail=2)


async def compacted(made: Scene, **channels: Any) -> dict[str, Any]:
    return dict(await compact(state(LONG, "compact", **channels), made.run))


@pytest.mark.anyio
async def test_the_older_part_is_summarised_and_the_tail_stays_whole() -> None:
    made = scene("all in short", settings=KEEP_TWO)
    update = await compacted(made, system_prompt="be brief")
    assert update["decision"]["kind"] == "turn"
    assert update["view"] == update["compaction"]
    assert "all in short" in update["view"]["head"][0].text
    assert update["view"]["start"] == 4
    (request,) = made.provider.requests
    assert [m.id for m in request.messages[:-1]] == ["u1", "a1", "r1", "u2"]
    assert (request.messages[-1].text, request.tools) == (INSTRUCTION, ())
    (event,) = made.events
    assert isinstance(event, Compaction)
    assert event.tokens_after < event.tokens_before


@pytest.mark.anyio
async def test_an_earlier_summary_becomes_part_of_the_next() -> None:
    made = scene("shorter still", settings=KEEP_TWO)
    view = View(head=[user("summary")], start=3, measured_from=3)
    update = await compacted(made, view=view)
    assert [m.id for m in made.provider.requests[0].messages[:-1]] == ["summary", "u2"]
    assert update["view"]["start"] == 4


NOTHING: dict[str, tuple[Scripted, Settings]] = {
    "nothing to cut off": ("unused", Settings(compaction_tail=6)),
    "an empty summary": (" \n", KEEP_TWO),
    "a failed summary": (said("half", stop="error"), KEEP_TWO),
    "a stream without an end": ([], KEEP_TWO),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "settings"), NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize(
    ("overflow", "aborted", "kind"),
    [(False, False, "turn"), (True, False, "stopped"), (True, True, "turn")],
)
async def test_without_room_the_turn_is_tried_unless_it_must_fail_again(
    answer: Scripted, settings: Settings, overflow: bool, aborted: bool, kind: str
) -> None:
    made = scene(answer, settings=settings)
    if aborted:
        made.run.signal.abort()
    update = await compacted(made, run=record(overflow=overflow))
    assert update["decision"]["kind"] == kind
    assert "view" not in update
    assert not made.events


@pytest.mark.anyio
async def test_a_head_that_would_be_summarised_alone_is_kept() -> None:
    made = scene(settings=Settings(compaction_tail=6))
    view = View(head=[user("summary")], start=0, measured_from=6)
    assert (await compacted(made, view=view))["decision"]["kind"] == "turn"
    assert made.provider.requests == []


@pytest.mark.anyio
async def test_a_compaction_lasts_for_later_runs_and_the_ledger_keeps_every_message() -> None:
    made = rig("one", "the gist", "two", "three", window=1000, settings=KEEP_TWO)
    await made.run({"messages": "x" * 4000})
    events = await made.events({"messages": "again"})
    assert "compaction" in told(events)
    await made.run({"messages": "and again"})
    shown = outline(made.provider.requests[-1].messages)
    assert "the gist" in shown[0]
    assert shown[1:] == ["assistant: one", "user: again", "assistant: two", "user: and again"]
    assert len(await made.ledger()) == 6


@pytest.mark.anyio
async def test_an_overflow_is_compacted_and_asked_again() -> None:
    made = rig("one", ContextOverflowError("too long"), "the gist", "two", settings=KEEP_TWO)
    await made.run({"messages": "first"})
    ended = await made.run({"messages": "second"})
    assert (ended.status, ended.final_text) == ("completed", "two")
    assert "the gist" in made.provider.requests[-1].messages[0].text
    assert outline(await made.ledger())[2:] == ["user: second", "assistant: two"]


@pytest.mark.anyio
async def test_context_overflow_ends_a_run_failed_where_nothing_can_be_cut_off() -> None:
    made = rig(said("", stop="error"), ContextOverflowError("too long"))
    await made.run({"messages": "before"})
    events = await made.events({"messages": "long"})
    end: Any = events[-1]
    assert (end.status, end.reason) == ("failed", "context_overflow")
    assert end.error["kind"] == "context_overflow"
    assert "nothing is left to summarise" in end.error["message"]
    stored = (await made.graph.aget_state(on("t"))).values["result"]
    assert stored["error"] == end.error
