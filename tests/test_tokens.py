"""Estimates of tokens. What two tokenizers count for texts of many scripts is in the vectors."""

import base64
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from loopwright.tokens import IMAGE_TOKENS, content_tokens, message_tokens, text_tokens

PROSE = "the quick brown fox jumps over the lazy dog "


@given(st.text(), st.text())
def test_a_text_has_tokens_and_more_text_not_fewer(one: str, other: str) -> None:
    assert (text_tokens(one) > 0) == bool(one)
    assert text_tokens(one + "\n" + other) >= max(text_tokens(one), text_tokens(other))


@given(st.integers(0xD800, 0xDFFF))
def test_half_a_surrogate_pair_is_a_sign_like_others(code: int) -> None:
    assert text_tokens(chr(code) * 3) == 3


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (PROSE * 100, 800, 1100),
        (base64.b64encode(random.Random(1).randbytes(3000)).decode(), 1300, 4200),
        ("Привет, мир! Как дела сегодня? " * 10, 60, 350),
        ("नमस्ते दुनिया " * 10, 40, 400),
        ("مرحبا بالعالم " * 10, 30, 300),
    ],
)
def test_a_text_is_neither_undercounted_nor_wildly_overcounted(
    text: str, least: int, most: int
) -> None:
    assert least <= text_tokens(text) <= most


def test_the_arguments_of_calls_count() -> None:
    call: Any = {"name": "write", "args": {"text": PROSE * 100}, "id": "c1"}
    broken: Any = {**call, "args": '{"text": "' + PROSE, "error": "cut", "id": "c2"}
    whole = AIMessage("", tool_calls=[call], invalid_tool_calls=[broken])
    assert content_tokens(whole) > text_tokens(PROSE * 101)
    assert message_tokens(whole) > content_tokens(whole)


def test_a_call_is_counted_once_if_the_content_has_it_too() -> None:
    call: Any = {"name": "write", "args": {"text": PROSE}, "id": "c1"}
    block: Any = {"type": "tool_use", "name": "write", "input": call["args"], "id": "c1"}
    alone, doubled = AIMessage("", tool_calls=[call]), AIMessage([block], tool_calls=[call])
    assert content_tokens(alone) == content_tokens(doubled)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (HumanMessage([{"type": "image", "base64": "A" * 800_000}]), IMAGE_TOKENS),
        (HumanMessage([{"type": "image_url", "image_url": {"url": "data:,"}}]), IMAGE_TOKENS),
        (HumanMessage(["one", {"type": "text", "text": "one"}]), 2),
        (AIMessage([{"type": "reasoning", "reasoning": "one"}]), 1),
    ],
)
def test_a_block_counts_as_what_it_holds(message: BaseMessage, tokens: int) -> None:
    assert content_tokens(message) == tokens


def test_a_block_of_another_kind_counts_as_its_json() -> None:
    assert content_tokens(HumanMessage([{"type": "custom", "of": PROSE}])) > text_tokens(PROSE)
