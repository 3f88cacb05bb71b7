"""The node that asks the model: one request, its events, and what the answer leads to."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from loopwright.errors import ContextOverflowError, ModelError
from loopwright.hooks import Hooks, KeptContext
from loopwright.nodes.model import model
from loopwright.providers.contract import StreamEnd, StreamPiece, StreamStart
from loopwright.settings import Settings
from loopwright.state.messages import calls, error_of
from tests.ledgers import user
from tests.support.graphs import outline, rig, told
from tests.support.providers import Step, said
from tests.support.states import Scene, record, scene, state

LEDGER: list[AnyMessage] = [user("u")]
PIECE = StreamPiece(kind="text_delta", index=0, delta="x")


async def asked(made: Scene, **channels: Any) -> dict[str, Any]:
    return dict(await model(state(LEDGER, "turn", **channels), made.run))


def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (said("done"), "satisfied"),
        (said(""), "empty"),
        (said(" \n", stop="tool_use"), "empty"),
        (said("", stop="content_filter"), "satisfied"),
        (said("cut", stop="length"), "cut"),
        (said("later", stop="deferred"), "satisfied"),
        (said("", ("c1", "t", {})), "tools"),
        (said("", ("c1", "t", {}), stop="stop"), "tools"),
        (said("", ("c1", "t", {}), stop="length"), "tools"),
        (said("", ("c1", "t", "{")), "tools"),
        (said("", stop="error"), "hard_stop"),
        (said("", ("c1", "t", {}), stop="error"), "hard_stop"),
        (said("", ("c1", "t", {}), stop="aborted"), "hard_stop"),
    ],
)
async def test_calls_lead_to_tools_whatever_the_stop_reason_except_a_failure(
    answer: AIMessage, kind: str
) -> None:
    assert (await asked(scene(answer)))["decision"]["kind"] == kind


@pytest.mark.anyio
async def test_an_answer_is_told_piece_by_piece_and_appended_once() -> None:
    made = scene("hello")
    await asked(made)
    assert told(made.events) == [
        "message_start assistant",
        "message_update text_start",
        "message_update text_delta",
        "message_update text_end",
        "message_end assistant",
    ]
    start, *pieces, end = made.events
    ids = {start.message.id, end.message.id, *(p.message_id for p in pieces)}  # type: ignore[union-attr]
    assert ids == {made.run.appended[0].id}


STREAMS: dict[str, tuple[list[Step], list[str]]] = {
    "no start": (
        [PIECE, StreamEnd(message=said("done"))],
        ["message_start assistant", "message_end assistant"],
    ),
    "pieces before the start": (
        [PIECE, StreamStart(), PIECE, StreamEnd(message=said("done"))],
        ["message_start assistant", "message_update text_delta", "message_end assistant"],
    ),
    "two starts": (
        [StreamStart(), StreamStart(), StreamEnd(message=said("done"))],
        ["message_start assistant", "message_end assistant"],
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("steps", "events"), STREAMS.values(), ids=STREAMS)
async def test_streams_that_begin_oddly(steps: Sequence[Step], events: list[str]) -> None:
    made = scene(steps)
    await asked(made)
    assert told(made.events) == events
    assert outline(made.run.appended) == ["assistant: done"]


@pytest.mark.anyio
async def test_the_final_message_wins_over_the_pieces() -> None:
    made = scene([StreamStart(), PIECE, StreamEnd(message=said("another text"))])
    await asked(made)
    assert outline(made.run.appended) == ["assistant: another text"]


@pytest.mark.anyio
async def test_an_id_that_the_ledger_has_already_is_not_taken() -> None:
    answer = said("done").model_copy(update={"id": "u"})
    made = scene([StreamStart(message_id="u"), StreamEnd(message=answer)], messages=LEDGER)
    await asked(made)
    assert made.run.appended[0].id not in (None, "", "u")


@pytest.mark.anyio
async def test_blank_and_used_call_ids_are_replaced_before_anyone_sees_them() -> None:
    older = said("", ("c1", "t", {}))
    made = scene(said("", ("", "t", {}), ("c1", "t", {}), ("c2", "t", {})), messages=[older])
    await asked(made)
    ids = [call.id for call in calls(made.run.appended[0])]
    assert ids[2] == "c2"
    assert len({"", "c1", *ids}) == 5


@pytest.mark.anyio
async def test_what_the_provider_raises_goes_up_and_an_unfinished_message_is_not_kept() -> None:
    made = scene([StreamStart(), PIECE, KeyError("broken")])
    with pytest.raises(KeyError):
        await asked(made)
    assert told(made.events) == ["message_start assistant", "message_update text_delta"]
    assert made.run.appended == []


@pytest.mark.anyio
async def test_a_stream_without_an_end_is_an_error_that_names_the_provider() -> None:
    with pytest.raises(ModelError, match="provider 'scripted' ended without an answer"):
        await asked(scene([StreamStart(), PIECE]))


@pytest.mark.anyio
async def test_an_overflow_leads_to_one_compaction_and_nothing_is_told() -> None:
    made = scene(ContextOverflowError("too long"))
    update = await asked(made)
    assert update["decision"]["kind"] == "compact"
    assert update["run"]["overflow"] is True
    assert not made.events


@pytest.mark.anyio
async def test_a_second_overflow_is_a_failed_answer() -> None:
    made = scene(ContextOverflowError("too long"))
    update = await asked(made, run=record(overflow=True))
    assert update["decision"]["kind"] == "hard_stop"
    error = error_of(made.run.appended[0])
    assert error == {"kind": "context_overflow", "message": "too long"}
    assert told(made.events) == ["message_start assistant", "message_end assistant"]


@pytest.mark.anyio
async def test_an_answer_forgets_an_earlier_overflow() -> None:
    update = await asked(scene("done"), run=record(overflow=True))
    assert update["run"]["overflow"] is False


# ---- the request


@pytest.mark.anyio
async def test_hooks_are_asked_in_order_and_on_lists_of_their_own() -> None:
    order: list[str] = []

    async def transform(messages: list[AnyMessage], signal: Any) -> list[AnyMessage]:
        order.append("transform")
        messages.clear()
        return [user("shown")]

    def convert(messages: list[AnyMessage]) -> list[AnyMessage]:
        order.append("convert")
        return [*messages, user("converted")]

    def key(provider: str) -> str:
        order.append(f"key of {provider}")
        return "secret"

    hooks = Hooks(transform_context=transform, convert_to_llm=convert, get_api_key=key)
    made = scene("done", hooks=hooks)
    before = state(LEDGER, "turn", system_prompt="be brief")
    await model(before, made.run)
    (request,) = made.provider.requests
    assert order == ["transform", "convert", "key of scripted"]
    assert [m.id for m in request.messages] == ["shown", "converted"]
    assert (request.system_prompt, request.api_key) == ("be brief", "secret")
    assert before["messages"] == LEDGER


@pytest.mark.anyio
async def test_a_falsy_key_falls_back_to_the_configured_one() -> None:
    made = scene("done", hooks=Hooks(get_api_key=lambda provider: ""))
    await asked(made)
    assert made.provider.requests[0].api_key is None


@pytest.mark.anyio
async def test_a_transformed_context_serves_one_request_unless_it_is_kept() -> None:
    once = scene("done", hooks=Hooks(transform_context=lambda messages, signal: [user("x")]))
    assert "view" not in await asked(once)
    kept = Hooks(transform_context=lambda messages, signal: KeptContext(messages=[user("x")]))
    update = await asked(scene("done", hooks=kept))
    assert [m.id for m in update["view"]["head"]] == ["x"]
    assert update["view"]["start"] == len(LEDGER)


@pytest.mark.anyio
async def test_a_request_offers_the_tools_that_the_settings_name() -> None:
    made = scene("one", "two", tools=[look])
    await asked(made)
    made.run.settings = Settings(tools=(), thinking_level="high")
    await asked(made)
    offered = [[tool.name for tool in request.tools] for request in made.provider.requests]
    assert offered == [["look"], []]
    assert made.provider.requests[1].thinking_level == "high"


@pytest.mark.anyio
async def test_a_model_is_shown_no_custom_roles_by_default() -> None:
    made = scene("done")
    ledger: list[AnyMessage] = [SystemMessage("stored", id="s"), user("u")]
    await model(state(ledger, "turn"), made.run)
    assert [m.id for m in made.provider.requests[0].messages] == ["u"]


@pytest.mark.anyio
async def test_usage_is_added_up_over_the_thread() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    made = rig(*[said("x").model_copy(update={"usage_metadata": usage})] * 2)
    for number in (1, 2):
        ended = await made.run({"messages": "hi"})
        assert ended.usage["total_tokens"] == 3
        snapshot = await made.graph.aget_state({"configurable": {"thread_id": "t"}})
        assert snapshot.values["usage"]["total_tokens"] == 3 * number


@pytest.mark.anyio
async def test_a_failed_answer_ends_the_run_failed_with_reason_model_error() -> None:
    made = rig(said("", stop="error"), "never asked for")
    ended = await made.run({"messages": "hi"})
    assert (ended.status, ended.reason) == ("failed", "model_error")
    assert ended.error == {"kind": "server_error", "message": "it was error"}
    assert outline(await made.ledger()) == ["user: hi", "assistant: "]
