"""The loop for callers who own their transcript: their lists, their signal, their queues."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from loopwright.errors import InputError, UnknownModelError
from loopwright.hooks import Hooks
from loopwright.loops import LoopStream, agent_loop, agent_loop_continue
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.queues import enqueue
from loopwright.settings import Settings
from loopwright.signals import AbortSignal
from loopwright.state.log import CallbackLog, MemoryLog
from loopwright.testing import Gate, Response, ScriptedModel
from tests.ledgers import answer, result, user
from tests.support.graphs import outline, told
from tests.support.tasks import no_task_left

pytestmark = pytest.mark.anyio


def look() -> str:
    """Look."""
    return "seen"


CALLING = Response(text="I look.", calls=[("c1", "look", {})])


def parts(*script: Any, **more: Any) -> dict[str, Any]:
    """The parts of a loop whose model plays a script."""
    provider = ChatModelProvider(ScriptedModel(script))
    return {"models": lambda name: provider, "model": "m", "tools": [look], **more}


async def types(stream: LoopStream) -> list[str]:
    return told([event async for event in stream])


async def test_prompts_run_on_a_copy_of_the_messages() -> None:
    messages: list[AnyMessage] = [user("u", "before"), answer("a", text="yes")]
    async with no_task_left():
        stream = agent_loop(["hi", user("p", "there")], messages, **parts(CALLING, "done"))
        produced = await stream.result()
    assert outline(produced) == [
        "user: hi",
        "user: there",
        "assistant: I look. [c1]",
        "c1: seen",
        "assistant: done",
    ]
    assert outline(messages) == ["user: before", "assistant: yes"]


async def test_a_continuation_works_in_the_caller_s_own_list() -> None:
    messages: list[AnyMessage] = [user("u", "hi"), answer("a", "c0"), result("r", "c0")]
    provider = parts(CALLING, "done")
    produced = await agent_loop_continue(messages, **provider).result()
    assert outline(produced) == ["assistant: I look. [c1]", "c1: seen", "assistant: done"]
    assert messages[3:] == produced


async def test_the_events_are_those_of_an_agent_and_the_producer_waits_for_nobody() -> None:
    stream = agent_loop("hi", [], **parts(CALLING, "done"))
    produced = await stream.result()
    events = await types(stream)
    assert events == await types(stream)
    assert events[:3] == ["agent_start", "turn_start", "message_start user"]
    assert (events[-1], events.count("turn_end"), len(produced)) == ("agent_end", 2, 4)


@pytest.mark.parametrize(
    ("messages", "says"),
    [([], "the list of messages is empty"), ([user("u"), answer("a")], "the last message is an")],
)
async def test_there_must_be_something_to_continue_from(messages: list[Any], says: str) -> None:
    before = list(messages)
    with pytest.raises(InputError, match=f"nothing to continue from: {says}"):
        agent_loop_continue(messages, **parts("never said"))
    assert messages == before


async def test_a_signal_of_the_caller_cancels_the_loop() -> None:
    gate, signal = Gate(), AbortSignal()
    waiting = Response(text=["It ", "is done"], wait_for=gate, wait_after=1)
    async with no_task_left():
        stream = agent_loop("hi", [], **parts(waiting, signal=signal))
        await gate.reached()
        signal.abort()
        produced = await stream.result()
    assert produced[-1].response_metadata["stop_reason"] == "aborted"


@pytest.mark.parametrize("mode", ["one_at_a_time", "all"])
async def test_queues_may_be_functions_and_nothing_that_they_give_is_lost(mode: Any) -> None:
    polls: list[str] = []

    def steering() -> list[Any]:
        polls.append("steering")
        return ["one", user("u", "two")] if len(polls) == 2 else []

    async def follow_up() -> list[str]:
        polls.append("follow-up")
        return ["three"] if polls.count("follow-up") == 1 else []

    log = CallbackLog({"steering": steering, "follow_up": follow_up})
    settings = Settings(steering_mode=mode)
    script = ["a", "b", "c", "d"] if mode == "one_at_a_time" else ["a", "b", "c"]
    stream = agent_loop("hi", [], **parts(*script, log=log, settings=settings))
    users = [line for line in outline(await stream.result()) if line.startswith("user")]
    assert users == ["user: hi", "user: one", "user: two", "user: three"]
    with pytest.raises(InputError, match="takes its queues from functions"):
        log.append("t", "steering", {})


async def test_queues_may_be_a_log_under_the_thread_that_the_loop_names() -> None:
    log = MemoryLog()
    gate = Gate()
    stream = agent_loop("hi", [], **parts(Response(text="one", wait_for=gate), "two", log=log))
    await gate.reached()
    start: Any = await anext(aiter(stream))
    enqueue(log, start.thread, "follow_up", "and then")
    gate.open()
    assert outline(await stream.result())[2:] == ["user: and then", "assistant: two"]


async def test_hooks_and_settings_are_those_of_an_agent() -> None:
    hooks = Hooks(should_stop_after_turn=lambda turn: bool(turn.tool_results))
    stream = agent_loop(
        "hi", [], **parts(CALLING, hooks=hooks, system_prompt="Be kind.", settings=Settings())
    )
    assert outline(await stream.result())[1:] == ["assistant: I look. [c1]", "c1: seen"]


async def test_a_model_that_cannot_be_found_is_told_to_who_waits_and_to_who_iterates() -> None:
    def models(name: str) -> Any:
        raise UnknownModelError(name, "another one")

    stream = agent_loop("hi", [], models=models, model="nonsense")
    with pytest.raises(UnknownModelError):
        await stream.result()
    with pytest.raises(UnknownModelError):
        await types(stream)
