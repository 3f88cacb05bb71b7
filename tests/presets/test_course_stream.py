"""The course's event stream (S0-25), and the values that a run tells."""

import asyncio
import json
from types import MappingProxyType
from typing import Any

import pytest

from loopwright.errors import ConfigurationError
from loopwright.presets.course import EventStream, RunResult, ToolCall, UserMessage, to_json
from loopwright.presets.course.projection import CANCELLED, reason_text
from loopwright.presets.course.protocol import frozen, plain
from loopwright.signals import AbortSignal
from tests.support.course import ScriptedModel, add_tool, call, calling, run, texts, types


@pytest.mark.anyio
async def test_the_result_needs_no_consumer_and_the_events_survive_the_end() -> None:
    stream: EventStream[int, str] = EventStream()
    stream.push(1)
    stream.push(2)
    stream.finish("done")
    stream.push(3)
    stream.finish("other")
    assert await stream.result() == "done"
    assert [event async for event in stream] == [1, 2]


@pytest.mark.anyio
async def test_a_consumer_and_the_result_wait_for_what_comes() -> None:
    stream: EventStream[int, str] = EventStream()

    async def collect() -> list[int]:
        return [event async for event in stream]

    taken, result = asyncio.create_task(collect()), asyncio.create_task(stream.result())
    for event in range(3):
        stream.push(event)
        await asyncio.sleep(0)
    stream.finish("done")
    assert (await taken, await result) == ([0, 1, 2], "done")


@pytest.mark.anyio
async def test_one_consumer_at_a_time() -> None:
    stream: EventStream[int, str] = EventStream()
    for event in range(3):
        stream.push(event)
    first = aiter(stream)
    assert await anext(first) == 0
    with pytest.raises(ConfigurationError, match="has a consumer"):
        aiter(stream)
    await first.aclose()
    async for event in stream:
        assert event == 1
        break
    assert await anext(aiter(stream)) == 2
    with pytest.raises(StopAsyncIteration):
        await anext(first)


@pytest.mark.anyio
async def test_a_stream_that_fails_raises_behind_its_events() -> None:
    stream: EventStream[int, str] = EventStream()
    stream.push(1)
    stream.fail(RuntimeError("broken"))
    seen: list[int] = []
    with pytest.raises(RuntimeError, match="broken"):
        async for event in stream:
            seen.append(event)
    assert seen == [1]
    with pytest.raises(RuntimeError, match="broken"):
        await stream.result()


@pytest.mark.anyio
async def test_a_result_is_frozen_through_and_through() -> None:
    model = ScriptedModel([calling("r1", call("add", "c1", {"left": 1, "right": 2}))])
    events, result = await run(model, add_tool(), max_steps=1)
    with pytest.raises(AttributeError):
        result.status = "failed"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        result.messages[0].content = ""  # type: ignore[misc]
    with pytest.raises(TypeError):
        events[0].payload["message"] = None  # type: ignore[index]
    chunk = events[1].payload["chunk"]
    with pytest.raises(TypeError):
        chunk.tool_call.arguments["left"] = 3


@pytest.mark.anyio
async def test_events_and_results_have_the_json_form_of_the_course() -> None:
    model = ScriptedModel([calling("r1", call("add", "c1", {"left": 1, "right": 2}))])
    events, _ = await run(model, add_tool(), max_steps=1)
    told = json.loads(json.dumps([to_json(event) for event in events]))
    arguments = {"left": 1, "right": 2}
    made = {"type": "toolCall", "id": "c1", "name": "add", "arguments": arguments}
    assert told[1]["payload"] == {
        "chunk": {"type": "toolCall", "requestId": "request-001", "toolCall": made}
    }
    assert told[3]["payload"]["message"] == {
        "role": "toolResult",
        "id": "tool-result-c1",
        "toolCallId": "c1",
        "toolName": "add",
        "content": '{"sum":3}',
        "isError": False,
    }
    assert told[4]["payload"]["result"]["maxSteps"] == 1


@pytest.mark.anyio
async def test_a_transcript_may_be_given_on_to_the_next_run() -> None:
    first = ScriptedModel([calling("r1", call("add", "c1", {"left": [1], "right": [2]}))])
    _, result = await run(first, add_tool(), max_steps=1)
    again = ScriptedModel([texts("r2", "done")])
    events, followed = await run(again, messages=result.messages)
    assert followed.messages[: len(result.messages)] == result.messages
    as_json = [to_json(message) for message in result.messages]
    _, same = await run(ScriptedModel([texts("r2", "done")]), messages=as_json)
    assert same.messages == followed.messages
    assert types(events).count("message.accepted") == 3


def test_freezing_and_thawing_give_the_same_value() -> None:
    value: Any = {"a": [1, {"b": None}], "c": {}}
    assert plain(frozen(value)) == value
    assert isinstance(frozen(value)["a"][1], MappingProxyType)
    assert ToolCall("c", "t", {"x": 1}) == ToolCall("c", "t", frozen({"x": 1}))


@pytest.mark.parametrize(
    ("reason", "text"),
    [("enough", "enough"), (ValueError("why"), "why"), ("", CANCELLED), (None, CANCELLED)],
)
def test_a_reason_is_a_text_or_the_message_of_an_error(reason: object, text: str) -> None:
    assert reason_text(reason) == text


class Unreadable(AbortSignal):
    """A signal that cannot be read once it has been looked at."""

    looked = 0

    @property
    def aborted(self) -> bool:
        self.looked += 1
        if self.looked > 3:
            raise OSError("out of reach")
        return False


@pytest.mark.anyio
async def test_a_signal_that_cannot_be_read_fails_the_run() -> None:
    _, result = await run(ScriptedModel([texts("r1", "no")]), signal=Unreadable())
    assert (result.status, result.error and result.error.code) == ("failed", "SIGNAL_ACCESS_FAILED")


@pytest.mark.anyio
async def test_no_message_is_made_up_for_a_run_that_failed() -> None:
    class Broken:
        def stream(self, request: Any, signal: Any) -> Any:
            raise OSError("no line")

    events, result = await run(Broken())
    assert isinstance(result, RunResult)
    assert result.messages == (UserMessage("user-001", "What is 20 + 22?"),)
    assert types(events) == ["message.accepted", "run.finished"]
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("MODEL_STREAM_FAILED", "no line")
