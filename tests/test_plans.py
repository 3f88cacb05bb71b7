"""A plan: its revisions, marks and drift, by itself and in a run that makes and follows one."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright import Settings
from loopwright.errors import ConfigurationError
from loopwright.hooks import Hooks, NextTurn
from loopwright.planning import plan_tool
from loopwright.plans import Plan, marks
from tests.support.graphs import Rig, on, rig
from tests.support.providers import said

HI: Any = {"messages": "hi"}
STEPS = ["search", "compare", "conclude"]


def look(n: int) -> int:
    """Look."""
    return n


def planning(id: str, steps: list[str], text: str = "") -> Any:
    """A message that makes or revises the plan."""
    return said(text, (id, "plan", {"steps": steps}))


async def stored(made: Rig) -> dict[str, Any] | None:
    """The plan in the state."""
    plan: dict[str, Any] | None = (await made.graph.aget_state(on("t"))).values.get("plan")
    return plan


@given(st.text(max_size=30), st.lists(st.integers(0, 12), max_size=5))
def test_marks_are_found_in_any_text(text: str, steps: list[int]) -> None:
    said = "".join(f"{text}[Step {n} done]" for n in steps)
    assert marks(said) == steps or "[" in text
    assert marks("[step 2 DONE] [Step done] [Step -1 done]") == [2]


@given(
    st.lists(st.text(max_size=5), max_size=5),
    st.lists(st.integers(-1, 7), max_size=12),
    st.lists(st.text(max_size=5), max_size=5),
)
def test_done_steps_are_steps_of_the_plan(
    steps: list[str], marked: list[int], others: list[str]
) -> None:
    plan = Plan(steps=tuple(steps))
    for step in marked:
        plan = plan.marked(step)
    assert len(plan.done) + plan.invalid_marks == len(marked)
    assert set(plan.done) <= set(range(1, len(steps) + 1))
    plan = plan.revised(others, most_idle=2, most=8)
    assert all(step <= len(others) for step in plan.done)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.anyio
async def test_the_plan_is_in_the_state_and_in_the_system_part_but_not_in_the_transcript() -> None:
    made = rig(
        planning("p1", STEPS),
        said("[Step 1 done]", ("c1", "look", {"n": 1})),
        "[Step 2 done] done",
        tools=[plan_tool, look],
        system_prompt="Be brief.",
    )
    await made.run(HI)
    first, second, third = made.provider.requests
    assert first.system_prompt == "Be brief."
    assert second.system_prompt.startswith(
        "Be brief.\n\nThe current plan:\n1. search\n2. compare\n"
    )
    assert "1. search (done)\n2. compare\n" in third.system_prompt
    assert not any("current plan" in str(message.content) for message in third.messages)
    plan = await stored(made)
    assert plan is not None
    assert (plan["steps"], plan["done"], plan["progress"]) == (STEPS, [1, 2], True)
    assert (await made.graph.aget_state(on("t"))).values["system_prompt"] == "Be brief."


@pytest.mark.anyio
async def test_a_plan_that_is_only_changed_ends_the_run() -> None:
    script = [planning(f"p{n}", [f"step {n}"]) for n in range(9)]
    made = rig(*script, tools=[plan_tool])
    result = await made.run(HI)
    assert (result.status, result.reason, result.turns) == ("stopped", "idle_revisions", 4)


@pytest.mark.anyio
async def test_a_plan_that_is_changed_too_often_ends_the_run() -> None:
    work = [
        said("", (f"c{n}", "look", {"n": n}), (f"p{n}", "plan", {"steps": [f"step {n}"]}))
        for n in range(9)
    ]
    made = rig(*work, tools=[plan_tool, look], settings=Settings(plan_revisions=3))
    result = await made.run(HI)
    assert (result.reason, result.turns) == ("too_many_revisions", 5)


@pytest.mark.anyio
async def test_an_unfinished_plan_goes_on_in_the_next_run_with_new_counts() -> None:
    made = rig(
        planning("p1", STEPS), planning("p2", STEPS), "[Step 1 done]", "[Step 2 done]",
        "[Step 3 done]", "bye", tools=[plan_tool],
    )  # fmt: skip
    for _ in range(2):
        await made.run(HI)
    plan = await stored(made)
    assert plan is not None
    assert (plan["done"], plan["revisions"], plan["idle"]) == ([1, 2], 0, 0)
    await made.run(HI)
    await made.run(HI)
    assert await stored(made) is None
    assert "current plan" not in made.provider.requests[-1].system_prompt


@pytest.mark.anyio
async def test_a_model_of_its_own_makes_the_plan_and_another_follows_it() -> None:
    settings = Settings(model="actor", plan_model="thinker")
    made = rig(
        planning("p1", STEPS), said("", ("c1", "look", {"n": 1})), "done",
        tools=[look, plan_tool], settings=settings,
    )  # fmt: skip
    await made.run(HI)
    asked = [(r.model, [tool.name for tool in r.tools]) for r in made.provider.requests]
    assert asked == [("thinker", ["plan"])] + [("actor", ["look", "plan"])] * 2
    assert "Make a plan" in made.provider.requests[0].system_prompt


@pytest.mark.anyio
async def test_a_model_for_plans_needs_the_tool_for_them() -> None:
    made = rig("done", settings=Settings(plan_model="thinker"))
    with pytest.raises(ConfigurationError, match="there is no 'plan' tool"):
        await made.run(HI)


@pytest.mark.anyio
async def test_a_hook_may_revise_the_plan() -> None:
    hooks = Hooks(prepare_next_turn=lambda turn: NextTurn(plan=["only this"]))
    made = rig(planning("p1", STEPS), "done", tools=[plan_tool], hooks=hooks)
    await made.run(HI)
    assert "1. only this\n" in made.provider.requests[1].system_prompt
    plan = await stored(made)
    assert plan is not None and (plan["steps"], plan["revisions"]) == (["only this"], 1)


@pytest.mark.anyio
async def test_an_agent_that_is_reset_has_no_plan() -> None:
    made = rig(planning("p1", STEPS), "done", "again", tools=[plan_tool])
    await made.run(HI)
    await asyncio.to_thread(made.graph.rewrite, "t", [])
    await made.run(HI)
    assert "current plan" not in made.provider.requests[-1].system_prompt
