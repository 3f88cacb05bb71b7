"""Text and JSON made fit to be stored and sent; what is fit already stays the same object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.text import clean_json, clean_text, joined
from tests.ledgers import JSON, unhurried


@unhurried
@given(st.text(st.characters()))
def test_any_text_becomes_valid_and_stays_so(text: str) -> None:
    clean = clean_text(text)
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert "\0" not in clean
    assert clean_text(clean) is clean


@unhurried
@given(st.text())
def test_valid_text_without_nul_stays_the_same_object(text: str) -> None:
    text = text.replace("\0", "")
    assert clean_text(text) is text


def test_halves_side_by_side_become_their_character_and_lone_ones_a_replacement() -> None:
    assert clean_text("\ud83d\udd25 \udd25\ud83d") == "\U0001f525 \ufffd\ufffd"


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"a\0": [float("nan"), {"b": "\ud83d"}]}, {"a": [None, {"b": "\ufffd"}]}),
        (float("-inf"), None),
        ([1, True, None, 1.5, "x"], [1, True, None, 1.5, "x"]),
    ],
)
def test_json_is_cleaned_at_every_depth(value: Any, clean: Any) -> None:
    assert clean_json(value) == clean


@unhurried
@given(JSON)
def test_clean_json_stays_the_same_object(value: Any) -> None:
    clean = clean_json(value)
    assert clean_json(clean) is clean


@unhurried
@given(st.text() | st.lists(st.sampled_from(["a", "\ud83d", "\ude00"])).map("".join))
def test_joining_halves_loses_nothing(text: str) -> None:
    whole = joined(text)
    assert whole.encode("utf-16-le", "surrogatepass") == text.encode("utf-16-le", "surrogatepass")
    assert joined(whole) == whole
    assert "\ud83d\ude00" not in whole
