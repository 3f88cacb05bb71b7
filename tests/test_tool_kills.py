"""A process killed around a tool's effect: what has finished is used, nothing unsafe runs twice."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, ToolMessage

from loopwright import Hooks
from loopwright.events import AnyEvent, Repair, ToolExecutionEnd
from loopwright.state.journal import Known
from loopwright.state.messages import Call
from loopwright.state.repair import INTERRUPTED, NOT_EXECUTED
from loopwright.state.transcript import faults
from tests.support.kills import Plan, Workshop, asking, batch

pytestmark = pytest.mark.anyio

PLAN: Plan = [("book", "a"), ("put", "b"), ("book", "c"), ("look", "d")]
PLACES = ["before_effect", "after_effect", "journal"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Kills a process once for each way, and gives each test a copy of what it left behind."""
    made: dict[Any, Path] = {}

    def kill(place: str, nth: int, mode: str, plan: Plan = PLAN, answer: str = "") -> Workshop:
        key = (place, nth, mode, tuple(plan), answer)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("killed")
            Workshop(made[key]).kill(place, nth, plan, mode=mode, answer=answer)
        copy = tmp_path_factory.mktemp("copy")
        return Workshop(Path(shutil.copytree(made[key], copy, dirs_exist_ok=True)))

    return kill


async def noted(workshop: Workshop, plan: Plan = PLAN) -> dict[str, str]:
    """What the journal knows of each call, by its id."""
    async with workshop.agent() as agent:
        message = next(m for m in agent.messages() if m.type == "ai")
        entries = agent.graph.dependencies.log.read("t", [f"journal/{message.id}"])
    known = Known.of(entries)
    calls = [Call(f"c{n}", tool, {"name": name}) for n, (tool, name) in enumerate(plan, 1)]
    return {call.id: known.fate(call).kind for call in calls}


async def carried_on(
    workshop: Workshop, prompt: str = "", **options: Any
) -> tuple[list[AnyMessage], list[AnyEvent]]:
    """The transcript behind a resume, or behind a new prompt, and what that run told."""
    async with workshop.agent("All done.", **options) as agent:
        ongoing = agent.prompt(prompt) if prompt else agent.resume()
        events = [event async for event in ongoing]
        assert (await ongoing).status == "completed"
        messages = agent.messages()
    assert not faults(messages)
    return messages, events


def results(messages: list[AnyMessage]) -> list[str]:
    return [m.text for m in messages if isinstance(m, ToolMessage)]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("prompt", ["", "go on"], ids=["resumed", "prompted"])
async def test_one_call_after_the_other(killed: Any, place: str, nth: int, prompt: str) -> None:
    workshop: Workshop = killed(place, nth, "sequential")
    happened = [f"{tool} {name}" for tool, name in PLAN[: nth - (place == "before_effect")]]
    assert workshop.effects() == happened
    messages, _ = await carried_on(workshop, prompt)
    counts = workshop.counts()
    for at, ((tool, name), result) in enumerate(zip(PLAN, results(messages), strict=True), 1):
        effect = f"{tool} {name}"
        if at < nth or (at == nth and place == "journal"):  # it has finished
            assert (result, counts[effect]) == (f"{effect}: done", 1)
        elif at == nth and (prompt or tool == "book"):  # it has started
            assert (result, counts[effect]) == (INTERRUPTED, int(place == "after_effect"))
        elif prompt:
            assert (result, counts[effect]) == (NOT_EXECUTED, 0)
        else:  # it runs, and if it harms nobody for the second time
            again = at == nth and place == "after_effect"
            assert (result, counts[effect]) == (f"{effect}: done", 2 if again else 1)
    assert all(len(keys) == 1 for keys in workshop.keys().values())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("prompt", ["", "go on"], ids=["resumed", "prompted"])
async def test_all_calls_side_by_side(killed: Any, place: str, prompt: str) -> None:
    workshop: Workshop = killed(place, 2, "parallel")
    fates, before = await noted(workshop), workshop.counts()
    assert set(fates.values()) <= {"started", "finished"}
    assert place != "journal" or "finished" in fates.values()
    messages, _ = await carried_on(workshop, prompt)
    counts = workshop.counts()
    for (id, fate), (tool, name), result in zip(
        fates.items(), PLAN, results(messages), strict=True
    ):
        effect = f"{tool} {name}"
        if fate == "finished":
            assert (result, counts[effect]) == (f"{effect}: done", 1), id
        elif prompt or tool == "book":
            assert (result, counts[effect]) == (INTERRUPTED, before[effect]), id
        else:
            assert (result, counts[effect]) == (f"{effect}: done", before[effect] + 1), id


async def test_a_batch_that_only_reads_keeps_no_journal_and_runs_again(killed: Any) -> None:
    plan: Plan = [("look", "a"), ("look", "b")]
    workshop: Workshop = killed("after_effect", 2, "parallel", plan)
    assert set((await noted(workshop, plan)).values()) == {"unknown"}
    messages, _ = await carried_on(workshop)
    assert results(messages) == ["look a: done", "look b: done"]
    assert workshop.counts() == {"look a": 2, "look b": 2}


async def test_listeners_see_what_has_finished_and_hooks_are_not_asked_again(killed: Any) -> None:
    workshop: Workshop = killed("journal", 2, "sequential")
    asked: list[str] = []
    hooks = Hooks(before_tool_call=lambda context: asked.append(context.call.id))
    _, events = await carried_on(workshop, hooks=hooks)
    ends = [event for event in events if isinstance(event, ToolExecutionEnd)]
    assert [(end.tool_call_id, end.content) for end in ends] == [
        (f"c{n}", f"{tool} {name}: done") for n, (tool, name) in enumerate(PLAN, 1)
    ]
    assert asked == ["c3", "c4"]


async def test_the_repair_of_a_new_prompt_says_what_it_knew(killed: Any) -> None:
    _, events = await carried_on(killed("journal", 2, "sequential"), "go on")
    (repair,) = [event for event in events if isinstance(event, Repair)]
    assert (repair.report["recovered"], repair.report["synthesized"]) == (2, 2)


async def test_a_kill_in_the_repair_changes_nothing(killed: Any, tmp_path: Path) -> None:
    workshop: Workshop = killed("journal", 1, "sequential")
    before = workshop.counts()
    workshop.kill("repair", 1, PLAN)
    messages, _ = await carried_on(workshop, "go on")
    assert results(messages) == ["book a: done", *[NOT_EXECUTED] * 3]
    assert workshop.counts() == before


@pytest.mark.parametrize("place", ["before_effect", "after_effect"])
async def test_what_a_person_has_approved_is_not_asked_or_run_again(
    killed: Any, place: str
) -> None:
    workshop: Workshop = killed(place, 3, "parallel", answer="approve")
    fates = await noted(workshop)
    messages, events = await carried_on(workshop, hooks=Hooks(before_tool_call=asking))
    assert not any(event.type == "approval" for event in events)
    for fate, (tool, name), result in zip(fates.values(), PLAN, results(messages), strict=True):
        lost = fate == "started" and tool == "book"
        assert result == (INTERRUPTED if lost else f"{tool} {name}: done")
        assert workshop.counts()[f"{tool} {name}"] <= (1 if tool == "book" else 2)


async def test_what_a_person_has_refused_stays_refused(killed: Any) -> None:
    workshop: Workshop = killed("before_effect", 1, "parallel", answer="reject")
    messages, _ = await carried_on(workshop, "go on")
    assert results(messages) == ["Rejected.", INTERRUPTED, "Rejected.", INTERRUPTED]
    assert workshop.effects() == []


async def test_a_body_that_asks_a_person_runs_again_for_the_answer(tmp_path: Path) -> None:
    workshop, plan = Workshop(tmp_path), [("book", "a"), ("confirm", "b")]
    async with workshop.agent(batch(plan)) as agent:
        assert (await agent.prompt("go")).status == "interrupted"
    assert await noted(workshop, plan) == {"c1": "finished", "c2": "asking"}
    async with workshop.agent("All done.") as agent:
        assert (await agent.resume("maya")).status == "completed"
        assert results(agent.messages()) == ["book a: done", "book b for maya: done"]
    assert workshop.effects() == ["book a", "book b for maya"]
    assert await noted(workshop, plan) == {"c1": "finished", "c2": "finished"}
