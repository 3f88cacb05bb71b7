"""One question until it is answered: retries, waits, a silent server, refusals, other models."""

from typing import Any

import pytest

from loopwright import Agent, Settings
from loopwright.events import AnyEvent, Fallback, MessageStart, Retry
from loopwright.hooks import Hooks
from loopwright.providers.contract import StreamEnd
from loopwright.settings import Limits
from loopwright.state.messages import error_of, failure_of
from loopwright.testing import (
    HttpReply,
    OpenAIServer,
    Response,
    ScriptedModel,
    VirtualClock,
)
from tests.conformance.asking import SteppedClock, ask, client
from tests.faults.clocks import STALL, SilentClock, StallingClock
from tests.support.providers import ScriptedProvider, said

BUSY = HttpReply(status=503)
AT_ONCE = Settings(stall_timeout=None)
PICTURE = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.anyio
async def test_a_voided_attempt_leaves_nothing_but_a_retry_that_names_it() -> None:
    cut = Response(text="half of", stop="")
    asked = await ask(lambda number, body: "whole" if number else cut)
    (retry,) = asked.retries
    started = [event.message.id for event in asked.events if isinstance(event, MessageStart)]
    assert (retry.attempt, retry.kind) == (1, "protocol")
    assert retry.message_id in started and retry.message_id != asked.ledger[-1].id
    assert [str(message.text) for message in asked.ledger] == ["Work.", "whole"]


@pytest.mark.anyio
async def test_the_live_view_drops_what_was_streamed_when_it_hears_of_the_retry() -> None:
    seen: list[tuple[str, bool]] = []
    model = ScriptedModel([Response(text="half", raise_after=(1, ConnectionError("gone"))), "ok"])
    async with Agent(model, settings=AT_ONCE, clock=SteppedClock()) as agent:
        agent.subscribe(lambda e: seen.append((e.type, agent.state.streaming_message is None)))
        await agent.prompt("hi")
    assert ("message_update", False) in seen and ("retry", True) in seen


@pytest.mark.anyio
async def test_a_cancel_ends_a_wait_at_once_and_sends_nothing_more() -> None:
    model = ScriptedModel([ConnectionError("gone"), "never"])
    async with Agent(model, settings=AT_ONCE, clock=VirtualClock()) as agent:
        run = agent.prompt("hi")
        async for event in run:
            if isinstance(event, Retry):
                agent.abort()
        result = await run
        assert (result.status, len(model.requests)) == ("cancelled", 1)
        assert (await agent.prompt("again")).final_text == "never"


@pytest.mark.anyio
async def test_a_key_is_asked_for_before_every_attempt() -> None:
    keys = iter(["old", "new"])
    failed = said(stop="error")
    failed.response_metadata["error_kind"] = "timeout"
    provider = ScriptedProvider([StreamEnd(message=failed, failure=failure_of(failed))], "fine")
    hooks = Hooks(get_api_key=lambda name: next(keys))
    async with Agent(provider, hooks=hooks, settings=AT_ONCE, clock=SteppedClock()) as agent:
        assert (await agent.prompt("hi")).final_text == "fine"
    assert [request.api_key for request in provider.requests] == ["old", "new"]


@pytest.mark.anyio
async def test_each_attempt_is_paid_for_and_an_empty_wallet_ends_them() -> None:
    settings = Settings(stall_timeout=None, limits=Limits(calls=2, reserved_calls=0))
    asked = await ask(lambda number, body: BUSY, settings=settings)
    assert (len(asked.bodies), asked.result.status) == (2, "failed")
    assert (asked.result.error or {})["kind"] == "overloaded"


@pytest.mark.anyio
async def test_a_wait_beyond_the_time_of_a_run_is_not_begun() -> None:
    slow = HttpReply(status=429, headers={"retry-after": "60"})
    settings = Settings(stall_timeout=None, limits=Limits(seconds=30))
    asked = await ask(lambda number, body: slow, settings=settings)
    assert (len(asked.bodies), asked.waits) == (1, [])


@pytest.mark.anyio
async def test_a_silent_stream_is_closed_and_asked_for_again() -> None:
    clock = StallingClock()
    silent = Response(text="a b c", delay=1)
    asked = await ask(
        lambda number, body: "here" if number else silent,
        settings=Settings(stall_timeout=STALL),
        clock=clock,
        server_clock=SilentClock(clock),  # a pause of the server lasts until the client leaves
    )
    assert [retry.kind for retry in asked.retries] == ["timeout"]
    assert (asked.result.final_text, len(asked.bodies)) == ("here", 2)


@pytest.mark.anyio
async def test_a_request_whose_image_is_refused_is_sent_once_more_without_it() -> None:
    body = {"error": {"message": "This model does not support image input."}}
    replies: list[Any] = [HttpReply(status=400, body=body), "A text then.", "pong"]
    image = {"type": "image_url", "image_url": {"url": PICTURE}}
    async with OpenAIServer(replies) as server:
        async with Agent(client(server.base_url), settings=AT_ONCE) as agent:
            first = await agent.prompt([{"role": "user", "content": [image]}])
            assert first.final_text == "A text then."
            assert (await agent.prompt("ping")).final_text == "pong"
        sent = ["image" in str(request.body["messages"]) for request in server.requests]
    assert "base64" in str(server.requests[0].body) and sent[0]
    assert all("base64" not in str(request.body) for request in server.requests[1:])


@pytest.mark.anyio
async def test_a_refusal_of_what_was_not_sent_is_final() -> None:
    body = {"error": {"message": "Images are supported in user messages only"}}
    asked = await ask(lambda number, given: HttpReply(status=400, body=body))
    assert (len(asked.bodies), asked.kind) == (1, "bad_request")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "mends"),
    [(ConnectionError("gone"), True), (AssertionError("a bug"), False)],
    ids=["a failure that may pass", "a bug"],
)
async def test_the_next_model_is_asked_if_it_could_mend_the_failure(
    error: Exception, mends: bool
) -> None:
    first = ScriptedModel([error, error, "again"], model_name="first")
    second = ScriptedModel([Response(calls=[("c1", "look", {})]), "fine"], model_name="second")
    settings = Settings(retries=1, stall_timeout=None)
    events: list[AnyEvent] = []

    def look() -> str:
        """Look."""
        return "seen"

    async with Agent(
        first, [look], fallback=[second], settings=settings, clock=SteppedClock()
    ) as agent:
        agent.subscribe(events.append)
        result = await agent.prompt("hi")
    told = [(e.from_model, e.to_model) for e in events if isinstance(e, Fallback)]
    if mends:  # it stays for the rest of the run
        assert (told, result.final_text) == ([("first", "second")], "fine")
        assert (len(first.requests), len(second.requests)) == (2, 2)
    else:
        assert (told, (result.error or {})["kind"]) == ([], "bug")
        assert second.requests == []


@pytest.mark.anyio
async def test_a_model_that_is_not_there_is_passed_over_only_if_another_one_is_named() -> None:
    second = ScriptedModel(["fine"], model_name="second")
    async with Agent("nowhere/model", fallback=[second]) as agent:
        assert (await agent.prompt("hi")).final_text == "fine"
    async with Agent("nowhere/model") as agent:
        with pytest.raises(ValueError, match="unknown provider"):
            await agent.prompt("hi")


@pytest.mark.anyio
async def test_a_stored_failure_says_the_status_and_the_wait() -> None:
    reply = HttpReply(status=429, headers={"retry-after": "7200"})
    asked = await ask(lambda number, body: reply)
    found = failure_of(asked.failed)
    assert found is not None and (found.status, found.retry_after) == (429, 7200.0)
    assert "it can be asked again in 7,200 s, at 1970-01-01 02:00:00 UTC" in str(found)
    assert (error_of(asked.failed) or {})["kind"] == "rate_limit"
