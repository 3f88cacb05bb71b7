"""The node that begins a run: what it admits, mends and freezes, and what it refuses."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright import Agent
from loopwright.errors import (
    ConfigurationError,
    InputError,
    UnknownModelError,
)
from loopwright.nodes.load import load
from loopwright.providers.contract import Provider
from loopwright.settings import Limits, Settings
from loopwright.state.repair import INTERRUPTED
from loopwright.state.schema import View
from loopwright.state.transcript import faults
from tests.ledgers import answer, result, user
from tests.support.graphs import outline, rig, told
from tests.support.openings import kind, opening, refusal
from tests.support.providers import said
from tests.support.states import record, scene

BROKEN: list[AnyMessage] = [user("u"), answer("a", "c1", "c2"), result("r", "c1")]


@pytest.mark.anyio
async def test_the_prompts_are_told_and_appended() -> None:
    made = scene()
    update = await load(opening([], user("u1"), user("u2")), made.run)
    assert kind(update) == "opening"
    assert told(made.events) == [
        "agent_start",
        "turn_start",
        *["message_start user", "message_end user"] * 2,
    ]
    assert [m.id for m in made.run.appended] == ["u1", "u2"]
    assert update["run"]["status"] == "running"
    assert (update["run"]["turn"], update["run"]["first"]) == (1, 0)


@pytest.mark.anyio
async def test_a_prompt_may_be_empty() -> None:
    made = scene()
    assert kind(await load(opening([user("u")]), made.run)) == "opening"
    assert told(made.events) == ["agent_start", "turn_start"]


@pytest.mark.anyio
async def test_what_this_run_produces_begins_behind_the_older_messages() -> None:
    update = await load(opening([user("u"), answer("a")], user("v")), scene().run)
    assert update["run"]["first"] == 2


@pytest.mark.anyio
async def test_a_message_that_is_stored_already_is_refused() -> None:
    made = scene()
    assert kind(await load(opening([user("u")], user("u", "edited")), made.run)) == "refused"
    assert isinstance(refusal(made), InputError)


@pytest.mark.anyio
async def test_settings_and_overrides_are_frozen_into_the_state() -> None:
    made = scene(settings=Settings(model="m", limits=Limits(turns=7)))
    made.run.overrides = {"model": "other", "max_turns": 3, "tools": []}
    update = await load(opening([], user("u")), made.run)
    frozen = Settings(model="other", limits=Limits(turns=3), tools=())
    assert made.run.settings == frozen
    assert Settings.from_json(update["settings"]) == frozen


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("overrides", "field"),
    [({"tools": ["nope"]}, "tools"), ({"max_turns": 0}, "limits.turns")],
)
async def test_an_override_that_cannot_be_is_refused(overrides: Any, field: str) -> None:
    made = scene()
    made.run.overrides = overrides
    assert kind(await load(opening([], user("u")), made.run)) == "refused"
    error = refusal(made)
    assert isinstance(error, ConfigurationError) and error.field == field


@pytest.mark.anyio
async def test_an_unknown_model_is_refused() -> None:
    def unknown(name: str) -> Any:
        raise UnknownModelError(name, "others")

    made = scene()
    object.__setattr__(made.run.dependencies, "resolve", unknown)
    update = await load(opening([], user("u")), made.run)
    assert update["decision"]["error"]["kind"] == "UnknownModelError"
    assert isinstance(refusal(made), UnknownModelError)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "override", "stored", "used"),
    [
        (None, None, "begun with", "begun with"),
        (None, None, "", ""),
        ("the agent's", None, "begun with", "the agent's"),
        ("", None, "begun with", ""),
        ("the agent's", "the run's", "begun with", "the run's"),
        (None, "the run's", "begun with", "the run's"),
    ],
)
async def test_the_run_s_prompt_wins_then_the_agent_s_then_the_thread_s(
    given: str | None, override: str | None, stored: str, used: str
) -> None:
    made = scene(system_prompt=given)
    made.run.overrides = {} if override is None else {"system_prompt": override}
    update = await load(opening([], user("u"), system_prompt=stored), made.run)
    assert update["system_prompt"] == used


# ---- repair


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("policy", "status", "mends"),
    [
        ("died", "running", True),
        ("died", "ended", False),
        ("always", "ended", True),
        ("off", "running", False),
    ],
)
async def test_a_transcript_is_mended_as_the_policy_says(
    policy: Any, status: str, mends: bool
) -> None:
    made = scene(settings=Settings(repair_policy=policy))
    before = opening(BROKEN, user("v"), run=record(id="last", status=status))
    await load(before, made.run)
    assert told(made.events)[:2] == ["agent_start", "repair" if mends else "turn_start"]
    if mends:
        assert not faults([*(made.run.rewritten or []), *made.run.appended])
    else:
        assert made.run.rewritten is None


@pytest.mark.anyio
async def test_a_run_after_a_death_names_the_dead_one() -> None:
    made = scene()
    before = opening([user("u")], user("v"), run=record(id="dead", status="running"))
    update = await load(before, made.run)
    assert made.events[0].resumed_from == "dead"  # type: ignore[union-attr]
    assert update["run"]["resumed_from"] == "dead"
    assert made.run.rewritten is None


@pytest.mark.anyio
async def test_a_result_that_a_dead_batch_kept_back_is_used() -> None:
    made = scene()
    held = {"results": [result("r2", "c2", "kept")], "extra": [], "terminate": False}
    before = opening(BROKEN, user("v"), run=record(status="running"), held=held)
    update = await load(before, made.run)
    assert outline(made.run.rewritten or [])[2:] == ["c1: ok", "c2: kept"]
    assert update["held"] is None


@pytest.mark.anyio
async def test_a_view_moves_with_a_mended_transcript() -> None:
    older: list[AnyMessage] = [user("o"), answer("p", "c0"), user("q")]
    view = View(head=[user("summary")], start=2, measured_from=3)
    before = opening(older, user("v"), run=record(status="running"), compaction=view)
    made = scene()
    update = await load(before, made.run)
    assert [m.id for m in made.run.rewritten or []] == ["o", "p", "tool-result-c0", "q"]
    assert update["view"]["start"] == 3


@pytest.mark.anyio
@pytest.mark.parametrize("failing", ["agent_start", "repair", "turn_start", "message_end"])
async def test_a_failure_while_a_dead_run_is_mended_is_mended_by_the_next(failing: str) -> None:
    made = rig(said("", ("c1", "t", {})), "fine")
    await made.run({"messages": "hi"}, interrupt_before=["tool_batch"])

    def fail(event: Any) -> None:
        remove()
        raise KeyError(failing)

    def once(event: Any) -> None:
        if event.type == failing:
            fail(event)

    remove = made.graph.dependencies.listeners.add(once)
    assert (await made.run({"messages": "again"})).reason == "fault"
    assert (await made.run({"messages": "now"})).status == "completed"
    ledger = await made.ledger()
    assert not faults(ledger)
    assert outline(ledger)[2] == f"c1: {INTERRUPTED}"


@pytest.mark.anyio
async def test_a_provider_that_does_not_come_up_is_a_fault_behind_the_prompt() -> None:
    def broken(name: str) -> Provider:
        raise ImportError("the client library is broken")

    async with Agent("any", models=broken) as agent:
        result = await agent.prompt("hi")
        assert (result.status, result.reason) == ("failed", "fault")
        assert result.error == {"kind": "ImportError", "message": "the client library is broken"}
        assert [message.text for message in agent.messages()] == ["hi", ""]
