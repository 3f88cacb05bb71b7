"""Which argument texts are arguments, and what is said about the others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.providers.arguments import ArgumentsError, is_whole, parse_arguments

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=4)


def fault(text: str) -> str:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(text)
    return caught.value.fault


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        ('{"a": "{\\"b\\": 1}"}', {"a": '{"b": 1}'}),
        ('{"t": "\\ud99c x"}', {"t": "\ufffd x"}),
        ('{"t": "\\ud83d\\ude80"}', {"t": "\U0001f680"}),
        ('{"n": 9223372036854775807}', {"n": 2**63 - 1}),
    ],
)
def test_a_whole_object_is_taken(text: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize(
    "text",
    ['{"path":"x","content":"abc', '{"a": {"b": 1}', "{bad", '{"a": [1, 2', '{"a\\"', '"{\\"a'],
)
def test_a_text_that_ends_too_early_is_called_incomplete(text: str) -> None:
    assert fault(text) == "ARGUMENTS_TRUNCATED"


@pytest.mark.parametrize(
    "text",
    [
        "{'a': 1}",
        '{"a":1}{"a":2}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1,}',
        '{"a": 1, "a": 2}',
        '{"a": 9223372036854775808}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": 1} trailing',
    ],
    ids=lambda text: text[:24],
)
def test_a_text_that_is_not_strict_json_is_refused(text: str) -> None:
    assert fault(text) == "ARGUMENTS_INVALID_JSON"


@pytest.mark.parametrize("text", ["[1,2]", "3", "true", '"words"', '"[1]"', '"\\"{}\\""'])
def test_json_of_another_kind_is_refused(text: str) -> None:
    assert fault(text) == "ARGUMENTS_NOT_OBJECT"


def test_the_error_says_what_is_wrong() -> None:
    with pytest.raises(ArgumentsError, match="cut off"):
        parse_arguments('{"a": "b')
    with pytest.raises(ArgumentsError, match="NaN"):
        parse_arguments('{"a": NaN}')
    with pytest.raises(ArgumentsError, match="list"):
        parse_arguments("[]")


@given(OBJECTS)
def test_what_json_dumps_writes_is_read_back(arguments: dict[str, Any]) -> None:
    assert parse_arguments(json.dumps(arguments)) == arguments


@given(OBJECTS, st.data())
def test_no_part_of_an_object_s_text_is_taken_for_the_whole(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert fault(cut) == "ARGUMENTS_TRUNCATED"
    assert not is_whole(cut)
    assert is_whole(text)
