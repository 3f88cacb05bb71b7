"""Pi's agent core: what the preset pins, says and refuses; its control flow is in the traces."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright import Hooks, Settings, ToolContext
from loopwright.hooks import KeptContext, NextTurn, TurnContext
from loopwright.presets.pi import (
    PiAgent,
    Refused,
    agent_loop,
    agent_loop_continue,
    in_place,
    settings_of,
)
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.settings import Limits
from loopwright.signals import AbortSignal
from loopwright.state.messages import error_of
from loopwright.testing import Gate, Response, ScriptedModel
from tests.ledgers import answer, result, user
from tests.support.graphs import outline

pytestmark = pytest.mark.anyio


def look(what: str = "all") -> str:
    """Look at something."""
    return f"seen {what}"


def calling(*calls: tuple[str, str, Any], stop: str | None = None) -> Response:
    return Response(text="I work.", calls=calls, stop=stop)


def pi(*script: Any, tools: Any = (look,), **options: Any) -> PiAgent:
    return PiAgent(ScriptedModel(script), tools, **options)


def test_what_pi_pins_is_pinned_whatever_is_given_and_the_rest_stays() -> None:
    given = Settings(
        cancel_policy="record", repair_policy="always", limits=Limits(turns=1), thinking_level="low"
    )
    for settings in (settings_of(given), settings_of(None)):
        assert (settings.cancel_policy, settings.repair_policy) == ("leave", "off")
        assert settings.limits.turns > 1_000_000
    assert settings_of(given).thinking_level == "low"


async def test_the_transcript_that_it_starts_with_is_stored_with_the_first_run() -> None:
    messages: list[Any] = [
        user("u", "before"),
        answer("a", text="yes"),
        {"role": "user", "content": "x"},
    ]
    async with pi("done", messages=messages) as agent:
        assert outline(agent.state.messages) == ["user: before", "assistant: yes", "user: x"]
        await agent.prompt("hi")
        assert outline(agent.messages())[3:] == ["user: hi", "assistant: done"]


async def test_failed_calls_are_answered_in_pi_s_words() -> None:
    batch = calling(("c1", "missing", {}), ("c2", "look", {"what": {}}))
    cut = calling(("c3", "look", {}), stop="length")
    async with pi(batch, cut, "done") as agent:
        await agent.prompt("hi")
        first, second, third = (outline(agent.messages())[at] for at in (2, 3, 5))
    assert first == "c1: Tool missing not found"
    assert second.startswith('c2: Validation failed for tool "look":')
    assert third == (
        'c3: Tool call "look" was not executed: the response hit the output token limit, so its '
        "arguments may be truncated. Re-issue the tool call with complete arguments."
    )


async def test_a_null_for_a_required_field_becomes_its_empty_value() -> None:
    def count(number: int, word: str) -> str:
        """Count."""
        return f"{number!r} {word!r}"

    async with pi(
        calling(("c1", "count", {"number": None, "word": None})), "done", tools=[count]
    ) as agent:
        await agent.prompt("hi")
        assert outline(agent.messages())[2] == "c1: 0 ''"


async def test_calls_that_an_abort_kept_from_starting_stay_open() -> None:
    async def stop(context: ToolContext) -> str:
        """Abort the run."""
        agent.abort()
        return "stopped"

    calls = calling(("c1", "stop", {}), ("c2", "look", {}))
    settings = Settings(tool_execution="sequential")
    async with pi(calls, "fine", tools=[stop, look], settings=settings) as agent:
        assert (await agent.prompt("hi")).status == "cancelled"
        assert outline(agent.messages()) == [
            "user: hi",
            "assistant: I work. [c1 c2]",
            "c1: stopped",
            "assistant: ",
        ]
        assert (await agent.prompt("again")).final_text == "fine"


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda agent: agent.prompt("x"), "Agent is already processing a prompt. Use steer() or"),
        (
            lambda agent: agent.continue_(),
            "Agent is already processing. Wait for completion before",
        ),
        (lambda agent: agent.reset(), "Agent is already processing. Wait for completion before"),
    ],
    ids=["prompt", "continue", "reset"],
)
async def test_a_busy_agent_refuses_at_once_and_the_run_goes_on(
    act: Callable[[PiAgent], Any], says: str
) -> None:
    gate = Gate()
    async with pi(Response(text="done", wait_for=gate)) as agent:
        run = agent.prompt("hi")
        await gate.reached()
        with pytest.raises(Refused) as refused:
            act(agent)
        assert str(refused.value).startswith(says)
        gate.open()
        assert (await run).status == "completed"


async def test_there_must_be_something_to_continue_from() -> None:
    async with pi("one", "two") as agent:
        agent.steer("queued")
        with pytest.raises(Refused, match="No messages to continue from"):
            agent.continue_()
        agent.clear_queues()
        await agent.prompt("hi")
        with pytest.raises(Refused, match="Cannot continue from message role: assistant"):
            agent.continue_()
        agent.follow_up("and then")
        await agent.continue_()
        assert outline(agent.messages())[2:] == ["user: and then", "assistant: two"]


async def test_queues_are_cleared_one_by_one_or_both() -> None:
    async with pi() as agent:
        for clear, left in (
            (agent.clear_steering, ([], ["user: later"])),
            (agent.clear_follow_up, (["user: now"], [])),
            (agent.clear_queues, ([], [])),
        ):
            agent.clear_queues()
            agent.steer("now")
            agent.follow_up("later")
            clear()
            assert (outline(agent.queued("steering")), outline(agent.queued("follow_up"))) == left


async def test_reset_keeps_everything_but_the_conversation() -> None:
    async with pi(RuntimeError("it broke"), "fine", system_prompt="Be kind.") as agent:
        await agent.prompt("hi")
        assert agent.state.error_message == "it broke"
        agent.steer("later")
        agent.reset()
        assert agent.state.messages == agent.queued("steering") == []
        assert not agent.state.error_message
        assert (agent.system_prompt, [tool.name for tool in agent.tools]) == ("Be kind.", ["look"])
        await agent.prompt("anew")
        assert outline(agent.messages()) == ["user: anew", "assistant: fine"]


async def test_a_hook_that_changes_the_list_in_place_changes_the_context_for_the_run() -> None:
    def sum_up(messages: list[AnyMessage], signal: AbortSignal) -> list[AnyMessage]:
        if len(messages) == 3 and messages[0].text == "hi":
            messages[:] = [user("s", "a summary")]
            return [*messages, user("x", "only once")]
        return messages

    model = ScriptedModel([calling(("c1", "look", {})), calling(("c2", "look", {})), "done", "bye"])
    async with PiAgent(model, [look], hooks=Hooks(transform_context=sum_up)) as agent:
        await agent.prompt("hi")
        assert [len(request.messages) for request in model.requests] == [1, 2, 3]
        assert model.requests[1].messages[-1].content == "only once"
        assert len(agent.messages()) == 6
        await agent.prompt("again")
        assert len(model.requests[3].messages) == 7


async def test_a_hook_that_gives_a_list_of_its_own_changes_one_request() -> None:
    def last(messages: list[AnyMessage], signal: AbortSignal) -> list[AnyMessage]:
        return messages[-1:]

    hook = in_place(Hooks(transform_context=last)).transform_context
    assert hook is not None
    given: list[AnyMessage] = [user("u"), user("v")]
    answered: Any = hook(given, AbortSignal())
    assert await answered == given[1:]
    assert in_place(Hooks()) == Hooks()


async def test_changing_and_returning_are_told_apart() -> None:
    def both(messages: list[AnyMessage], signal: AbortSignal) -> list[AnyMessage]:
        messages.append(user("w"))
        return messages[:1]

    hook = in_place(Hooks(transform_context=both)).transform_context
    assert hook is not None
    answered: Any = hook([user("u")], AbortSignal())
    kept = await answered
    assert isinstance(kept, KeptContext) and kept.request is not None
    assert (len(kept.messages), len(kept.request)) == (2, 1)


async def test_the_next_turn_is_prepared_by_the_hook_that_is_set_when_it_is_called() -> None:
    asked: list[str] = []

    def old(turn: TurnContext) -> NextTurn | None:
        asked.append("old")
        return None

    def new(turn: TurnContext) -> NextTurn | None:
        asked.append("new")
        return None

    def swap() -> str:
        """Change the hook while the run goes on."""
        agent.hooks = Hooks(prepare_next_turn=hooks.pop(0))
        return "swapped"

    hooks: list[Any] = [new, None]
    script = [calling(("c1", "swap", {})), calling(("c2", "swap", {})), "done"]
    async with pi(*script, tools=[swap], hooks=Hooks(prepare_next_turn=old)) as agent:
        await agent.prompt("hi")
        assert (asked, len(agent.messages())) == (["new"], 6)


def parts(*script: Any) -> dict[str, Any]:
    provider = ChatModelProvider(ScriptedModel(script))
    return {"models": lambda name: provider, "model": "m", "tools": [look]}


async def test_the_raw_loops_take_their_queues_from_functions() -> None:
    given = {"steering": [["a", "b"]], "follow_up": [["c"]]}

    def take(queue: str) -> list[str]:
        return given[queue].pop() if given[queue] else []

    stream = agent_loop(
        "hi",
        [],
        **parts("one", "two"),
        get_steering=lambda: take("steering"),
        get_follow_up=lambda: take("follow_up"),
    )
    assert outline(await stream.result()) == [
        *("user: hi", "user: a", "user: b", "assistant: one"),
        *("user: c", "assistant: two"),
    ]


async def test_the_raw_loops_pin_what_the_agent_pins() -> None:
    script = [calling((f"c{n}", "missing", {})) for n in range(95)]
    produced = await agent_loop("hi", [], **parts(*script, "done")).result()
    assert len(produced) == 2 + 2 * 95
    assert produced[2].text == "Tool missing not found"


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "Cannot continue: no messages in context"),
        ([user("u"), answer("a")], "Cannot continue from message role: assistant"),
    ],
)
async def test_the_raw_continuation_refuses_in_pi_s_words(messages: list[Any], says: str) -> None:
    with pytest.raises(Refused, match=says):
        agent_loop_continue(messages, **parts())


async def test_the_raw_continuation_extends_the_caller_s_list_and_repairs_nothing() -> None:
    messages: list[AnyMessage] = [user("u"), answer("a", "c1", "c2"), result("r", "c1")]
    produced = await agent_loop_continue(messages, **parts("done")).result()
    assert messages[3:] == produced
    assert error_of(produced[-1]) is None
