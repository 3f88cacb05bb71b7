"""Whose thinking is sent to whom, in which form, and what stays withheld (S1-20, K23)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.providers.dialect import Dialect
from loopwright.providers.outgoing import Outgoing
from loopwright.providers.wire import Producer, Target, request_messages
from loopwright.providers.wire.images import OMITTED
from tests.ledgers import ledgers, unhurried
from tests.providers.test_outgoing import seen

NAMES = {"provider": "p", "api": "a", "model": "m"}
ME = Producer("p", "a", "m")
SIGNED = {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s"}}
KEPT = {"type": "reasoning", "reasoning": "hm", "extras": {"id": "rs", "encrypted_content": "e"}}
IMAGE = {"type": "image", "base64": "AA==", "mime_type": "image/png"}


def said(*blocks: Any, **metadata: Any) -> AIMessage:
    return AIMessage(list(blocks), id="a", response_metadata={**NAMES, **metadata})


def sent(message: AIMessage, target: Target) -> Any:
    return [m.content for m in request_messages("", [message], target)]


@pytest.mark.parametrize(
    ("form", "block", "expected"),
    [
        ("anthropic", SIGNED, {"type": "thinking", "thinking": "hm", "signature": "s"}),
        (
            "anthropic",
            {"type": "redacted_thinking", "data": "d", "index": 0},
            {"type": "redacted_thinking", "data": "d"},
        ),
        (
            "responses",
            KEPT,
            {
                "type": "reasoning",
                "id": "rs",
                "encrypted_content": "e",
                "summary": [{"type": "summary_text", "text": "hm"}],
            },
        ),
        ("standard", SIGNED, SIGNED),
    ],
)
def test_own_thinking_goes_back_as_the_protocol_writes_it(
    form: Any, block: Any, expected: Any
) -> None:
    target = Target(producer=ME, dialect=Dialect(thinking_back=form, texts="blocks"))
    text = {"type": "text", "text": "x"}
    assert sent(said(block, text), target) == [[expected, text]]
    assert sent(said(block, text, model="other"), target) == [[text]]
    assert sent(said(block, text, stop_reason="aborted"), target) == [[text]]


@pytest.mark.parametrize("form", ["anthropic", "responses"])
def test_thinking_whose_answer_is_gone_is_not_sent(form: Any) -> None:
    target = Target(producer=ME, dialect=Dialect(thinking_back=form, texts="blocks"))
    assert sent(said(SIGNED), target) == sent(said(KEPT), target) == []


def test_thinking_goes_back_beside_the_content_where_a_server_wants_it_there() -> None:
    target = Target(producer=ME, dialect=Dialect(thinking_back="reasoning_content"))
    (message,) = request_messages("", [said(SIGNED, "x")], target)
    assert (message.content, message.additional_kwargs) == ("x", {"reasoning_content": "hm"})


def test_another_ones_thinking_is_a_paragraph_of_its_own() -> None:
    target = Target(producer=ME, foreign_thinking="text")
    assert sent(said("x", SIGNED, "y", model="other"), target) == ["x\n\nhm\n\ny"]


def test_what_an_answer_was_made_without_stays_out_of_what_stands_before_it() -> None:
    dialect = Dialect(thinking_back="reasoning_content")
    target = Target(producer=ME, dialect=dialect)
    before: list[AnyMessage] = [HumanMessage(["see", IMAGE], id="u"), said(SIGNED, "x")]
    without = said("y", withheld=["images", "thinking"])
    shown = request_messages("", [*before, without, HumanMessage([IMAGE], id="v")], target)
    assert [m.content for m in shown[1:]] == ["x", "y", [IMAGE]]
    assert OMITTED in str(shown[0].content) and not shown[1].additional_kwargs


def test_a_request_that_failed_without_a_part_does_not_keep_it_out_of_the_next_one() -> None:
    failed = said(stop_reason="error", withheld=["images"])
    (shown,) = request_messages("", [HumanMessage([IMAGE], id="u"), failed])
    assert shown.content == [IMAGE]


PARTS = st.sampled_from(["images", "thinking"])
TARGETS = st.builds(
    Target,
    producer=st.sampled_from([None, ME]),
    foreign_thinking=st.sampled_from(["drop", "text"]),
    withheld=st.frozensets(PARTS),
    dialect=st.builds(
        Dialect,
        thinking_back=st.sampled_from([None, "standard", "anthropic", "reasoning_content"]),
        texts=st.sampled_from(["joined", "blocks"]),
        images=st.booleans(),
        image_results=st.booleans(),
    ),
)
BLOCKS = st.lists(st.sampled_from([SIGNED, KEPT, IMAGE, {"type": "text", "text": "x"}]), max_size=3)


@st.composite
def batches(draw: Any) -> list[AnyMessage]:
    """An answer of this model or another, with calls whose results show something."""
    id = draw(st.uuids()).hex
    calls: Any = [
        {"name": "t", "args": {}, "id": f"{id}{n}"} for n in range(draw(st.integers(0, 2)))
    ]
    marks = draw(st.lists(PARTS, max_size=1, unique=True))
    metadata = {**NAMES, "model": draw(st.sampled_from(["m", "n"])), "withheld": marks}
    answer = AIMessage(draw(BLOCKS), id=id, tool_calls=calls, response_metadata=metadata)
    results = [ToolMessage(draw(BLOCKS), id=f"r{c['id']}", tool_call_id=c["id"]) for c in calls]
    return [answer, *results]


@unhurried
@given(
    st.lists(st.one_of(batches(), ledgers()), max_size=5), st.lists(TARGETS, min_size=1, max_size=3)
)
def test_requests_that_grow_are_the_same_whatever_the_target(steps: Any, targets: Any) -> None:
    growing, messages = Outgoing(), list[AnyMessage]()
    for at, step in enumerate(steps):
        messages = [*messages, *step]
        target = targets[at % len(targets)]
        whole = request_messages("", messages, target)
        assert seen(growing.messages("", messages, target)) == seen(whole)
