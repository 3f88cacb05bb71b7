"""The node between two turns: when it polls, what it prepares, and when it makes room first."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.hooks import Hooks, NextTurn, TurnContext
from loopwright.nodes.queue_drain import queue_drain
from loopwright.queues import clear, enqueue
from loopwright.runs import QueueModes
from loopwright.settings import Limits, Settings
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig, told
from tests.support.providers import said
from tests.support.states import Scene, record, scene, state

LEDGER: list[AnyMessage] = [user("u"), answer("a", "c1"), result("r", "c1")]


async def drained(made: Scene, kind: str, **channels: Any) -> dict[str, Any]:
    return dict(await queue_drain(state(LEDGER, kind, **channels), made.run))


def queued(made: Scene, queue: Any, *texts: str) -> None:
    enqueue(made.run.dependencies.log, "t", queue, list(texts))


def cursor(made: Scene) -> Any:
    return made.run.cursor and (made.run.cursor["steering"], made.run.cursor["follow_up"])


@pytest.mark.anyio
async def test_an_opening_polls_steering_once_and_no_follow_ups() -> None:
    made = scene()
    queued(made, "follow_up", "later")
    queued(made, "steering", "one", "two")
    update = await drained(made, "opening")
    assert update["decision"]["kind"] == "turn"
    assert outline(made.run.appended) == ["user: one"]
    assert told(made.events) == ["queue_update", "message_start user", "message_end user"]
    assert cursor(made) == (2, 0)


@pytest.mark.anyio
async def test_an_opening_that_took_its_prompt_from_steering_does_not_poll_again() -> None:
    made = scene()
    queued(made, "steering", "one")
    assert (await drained(made, "opening_polled"))["decision"]["kind"] == "turn"
    assert not made.events


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "steering", "follow_up", "decided", "delivered"),
    [
        ("satisfied", False, False, "idle", []),
        ("satisfied", True, False, "turn", ["user: s"]),
        ("satisfied", True, True, "turn", ["user: s"]),
        ("satisfied", False, True, "turn", ["user: f"]),
        ("again", False, False, "turn", []),
        ("again", False, True, "turn", []),
        ("again", True, True, "turn", ["user: s"]),
    ],
)
async def test_the_truth_table_of_going_on(
    kind: str, steering: bool, follow_up: bool, decided: str, delivered: list[str]
) -> None:
    made = scene()
    if steering:
        queued(made, "steering", "s")
    if follow_up:
        queued(made, "follow_up", "f")
    update = await drained(made, kind)
    assert update["decision"]["kind"] == decided
    assert outline(made.run.appended) == delivered
    if decided == "turn":
        assert update["run"]["turn"] == 2
        assert told(made.events)[0] == "turn_start"
    else:
        assert not made.events


@pytest.mark.anyio
@pytest.mark.parametrize("queue", ["steering", "follow_up"])
async def test_a_mode_says_how_many_a_poll_takes_and_is_read_at_each_poll(queue: Any) -> None:
    modes = QueueModes("all", "all")
    made = scene(queue_modes=modes)
    queued(made, queue, "one", "two")
    await drained(made, "satisfied")
    assert outline(made.run.appended) == ["user: one", "user: two"]
    queued(made, queue, "three", "four")
    setattr(modes, queue, "one_at_a_time")
    made.run.appended = []
    await drained(made, "satisfied", cursor=made.run.cursor)
    assert outline(made.run.appended) == ["user: three"]
    assert (made.events[-3].delivered, made.events[-3].waiting) == (1, 1)  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_what_was_cleared_is_not_delivered() -> None:
    made = scene()
    queued(made, "steering", "old")
    queued(made, "follow_up", "kept")
    clear(made.run.dependencies.log, "t", "steering")
    queued(made, "steering", "new")
    await drained(made, "again")
    assert outline(made.run.appended) == ["user: new"]
    await drained(made, "satisfied", cursor=made.run.cursor)
    assert outline(made.run.appended) == ["user: new", "user: kept"]


@pytest.mark.anyio
async def test_at_the_turn_limit_nothing_is_taken() -> None:
    made = scene(settings=Settings(limits=Limits(turns=2)))
    queued(made, "steering", "s")
    queued(made, "follow_up", "f")
    update = await drained(made, "satisfied", run=record(turn=2))
    assert update["decision"]["kind"] == "idle"
    assert cursor(made) is None


@pytest.mark.anyio
async def test_the_next_turn_is_prepared_before_it_starts_and_steering_is_asked_once_more() -> None:
    made: Scene

    def prepare(turn: TurnContext) -> NextTurn:
        assert turn.message.id == "a"
        assert not made.events
        queued(made, "steering", "said meanwhile")
        return NextTurn(
            model="other",
            thinking_level="high",
            tools=[],
            system_prompt="new",
            messages=[user("x")],
        )

    made = scene(hooks=Hooks(prepare_next_turn=prepare))
    update = await drained(made, "again")
    assert outline(made.run.appended) == ["user: said meanwhile"]
    settings = Settings(model="other", thinking_level="high", tools=())
    assert made.run.settings == settings
    assert update["settings"] == settings.to_json()
    assert update["system_prompt"] == "new"
    assert [m.id for m in update["view"]["head"]] == ["x"]
    assert update["view"]["start"] == len(LEDGER)


@pytest.mark.anyio
async def test_nothing_is_asked_once_more_if_something_is_pending() -> None:
    made: Scene

    async def prepare(turn: TurnContext) -> None:
        queued(made, "steering", "said meanwhile")

    made = scene(hooks=Hooks(prepare_next_turn=prepare))
    queued(made, "steering", "first")
    update = await drained(made, "again")
    assert outline(made.run.appended) == ["user: first"]
    assert "settings" not in update


@pytest.mark.anyio
async def test_the_hook_is_not_called_before_the_first_turn_and_not_behind_the_last() -> None:
    asked: list[str] = []

    def prepare(turn: TurnContext) -> None:
        asked.append(str(turn.message.text))

    made = rig(said("one", ("c1", "t", {})), "two", hooks=Hooks(prepare_next_turn=prepare))
    await made.run({"messages": "hi"})
    assert asked == ["one"]


@pytest.mark.anyio
async def test_what_a_hook_changed_lasts_for_the_run_and_not_for_the_next() -> None:
    hooks = Hooks(prepare_next_turn=lambda turn: NextTurn(system_prompt="new", tools=[]))
    calls = [said("", (f"c{n}", "t", {})) for n in range(2)]
    made = rig(*calls, "done", "next", hooks=hooks, system_prompt="old", tools=[look])
    await made.run({"messages": "hi"})
    await made.run({"messages": "again"})
    seen = [(request.system_prompt, len(request.tools)) for request in made.provider.requests]
    assert seen == [("old", 1), ("new", 0), ("new", 0), ("old", 1)]


def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.anyio
@pytest.mark.parametrize(("window", "decided"), [(None, "turn"), (1000, "turn"), (10, "compact")])
async def test_a_context_above_its_share_of_the_window_is_compacted_first(
    window: int | None, decided: str
) -> None:
    made = scene(window=window)
    assert (await drained(made, "again"))["decision"]["kind"] == decided
    assert (await drained(made, "opening"))["decision"]["kind"] == decided
    chosen = scene(window=1000, settings=Settings(context_window=window))
    assert (await drained(chosen, "again"))["decision"]["kind"] == decided


@pytest.mark.anyio
async def test_a_delivered_message_is_not_delivered_again_though_the_step_fails_behind_it() -> None:
    made = rig(said("", ("c1", "t", {})), "fine", settings=Settings(steering_mode="all"))

    def fail(event: Any) -> None:
        if event.type == "tool_execution_start":
            enqueue(made.graph.dependencies.log, "t", "steering", ["one", "two"])
        if event.type == "message_start" and event.message.text == "two":
            raise KeyError

    remove = made.graph.dependencies.listeners.add(fail)
    assert (await made.run({"messages": "hi"})).reason == "fault"
    assert outline(await made.ledger())[-2] == "user: one"
    remove()
    await made.run({"messages": "next"})
    ledger = outline(await made.ledger())
    assert (ledger.count("user: one"), ledger.count("user: two")) == (1, 1)
    assert (await made.graph.aget_state(on("t"))).values["cursor"]["steering"] == 2
