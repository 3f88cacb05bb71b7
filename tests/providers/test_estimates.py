"""Counts that a provider did not give, at a real server."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from loopwright.providers.estimates import request_tokens
from loopwright.testing import HttpReply, SseReply
from loopwright.tokens import text_tokens
from tests.providers.asking import Told, ask_server, request, tools

TEXT = "the quick brown fox jumps over the lazy dog"


def reply(usage: dict[str, int] | None, text: str = TEXT) -> SseReply:
    """A streamed answer with these counts in its last chunk."""
    shape = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {**shape, "choices": [{"index": 0, "delta": {"content": text}}]}
    end = {**shape, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    counts = [] if usage is None else [{**shape, "choices": [], "usage": usage}]
    return SseReply(events=[delta, end, *counts])


def counts(told: Told) -> tuple[int, int, int, bool]:
    usage: Any = told.message.usage_metadata
    marked = told.message.response_metadata.get("estimated", False)
    return usage["input_tokens"], usage["output_tokens"], usage["total_tokens"], marked


ASKED = request_tokens(request(HumanMessage("hi")))
MADE = text_tokens(TEXT)


def usage(given: int, made: int, total: int) -> dict[str, int]:
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": total}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (None, (ASKED, MADE, ASKED + MADE, True)),
        (usage(0, 0, 0), (ASKED, MADE, ASKED + MADE, True)),
        (usage(0, 5, 5), (ASKED, 5, ASKED + 5, True)),
        (usage(7, 0, 7), (7, MADE, 7 + MADE, True)),
        (usage(0, 0, 30), (30 - MADE, MADE, 30, True)),
        (usage(0, 0, 3), (0, 3, 3, True)),
        (usage(7, 5, 12), (7, 5, 12, False)),
        (usage(7, 5, 20), (7, 5, 20, False)),
    ],
)
async def test_what_is_missing_is_estimated_and_marked(
    reported: dict[str, int] | None, expected: tuple[int, int, int, bool]
) -> None:
    assert counts(await ask_server(reply(reported))) == expected


@pytest.mark.anyio
async def test_an_empty_answer_has_no_output_to_estimate() -> None:
    assert counts(await ask_server(reply(usage(7, 0, 7), text=""))) == (7, 0, 7, False)


@pytest.mark.anyio
async def test_a_refused_request_counts_nothing() -> None:
    told = await ask_server(HttpReply(status=400, body={"error": {"message": "no"}}))
    assert told.message.usage_metadata is None
    assert "estimated" not in told.message.response_metadata


@pytest.mark.anyio
async def test_an_answer_that_broke_off_is_counted_as_far_as_it_came() -> None:
    cut = SseReply(events=reply(None).events[:1], done=False)
    told = await ask_server(cut)
    assert told.message.response_metadata["stop_reason"] == "error"
    assert counts(told) == (ASKED, MADE, ASKED + MADE, True)


def test_a_request_counts_its_system_part_its_messages_and_its_tools() -> None:
    asked = request(HumanMessage(TEXT))
    more = request(SystemMessage(TEXT), HumanMessage(TEXT), tools=tools("look", "write"))
    assert request_tokens(more) > request_tokens(asked) + MADE > 2 * MADE
