"""What becomes of the values that bodies return."""

import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from loopwright.tools.contract import ToolResult
from loopwright.tools.results import as_result, details_of, json_ready


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


class Place(BaseModel):
    name: str
    point: Point


IMAGE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is\n", "as it is\n"),
        (None, ""),
        ("", ""),
        (True, "true"),
        (42, "42"),
        (1.5, "1.5"),
        ([], "[]"),
        (["b", "a"], '["b","a"]'),
        ({"b": 1, "a": {"d": None, "c": "é"}}, '{"a":{"c":"é","d":null},"b":1}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        ({1: "x", None: "y", False: "z"}, '{"1":"x","false":"z","null":"y"}'),
        ((1, "x"), '[1,"x"]'),
        (Point(1, ("a",)), '{"tags":["a"],"x":1}'),
        (Place(name="here", point=Point(2)), '{"name":"here","point":{"tags":[],"x":2}}'),
        ([Colour.RED, Size.BIG, Word.YES], '["red",3,"yes"]'),
        ({Colour.RED: 1}, '{"red":1}'),
        (Colour.RED, "red"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02T03:00:00Z"),
        ([date(2024, 1, 2), Decimal("1.10")], '["2024-01-02","1.10"]'),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"path": PurePosixPath("a/b")}, '{"path":"a/b"}'),
        ([{"type": "file", "name": "a.txt"}], '[{"name":"a.txt","type":"file"}]'),
        ([{"type": "text"}], '[{"type":"text"}]'),
        (2**70, str(2**70)),
        (Fraction(1, 2), "0.5"),
    ],
)
def test_a_value_becomes_text_or_compact_sorted_json(value: Any, content: str) -> None:
    assert as_result(value) == ToolResult(content=content)


@pytest.mark.parametrize("blocks", [[TEXT], [IMAGE], ["caption", IMAGE], [TEXT, IMAGE]])
def test_content_blocks_stay_content(blocks: list[Any]) -> None:
    assert as_result(blocks) == ToolResult(content=blocks)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"\xff", "bytes"),
        ({1, 2}, "set"),
        (object(), "object"),
        (lambda: None, "function"),
        (Point, "type"),
        ({"rows": [{"at": {1}}]}, "set at rows[0].at"),
        (float("nan"), "the number nan"),
        ([1.0, float("inf")], "the number inf at [1]"),
        ({(1, 2): 3}, "tuple as a key"),
        (iter([1]), "list_iterator"),
    ],
)
def test_a_value_without_a_json_form_is_an_error_that_names_its_type(value: Any, told: str) -> None:
    result = as_result(value)
    assert result.is_error
    assert told in str(result.content)
    assert "0x" not in str(result.content)


def test_a_value_that_contains_itself_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "nested more than" in str(as_result(loop).content)
    assert as_result(loop).is_error


@pytest.mark.parametrize(
    ("text", "clean"),
    [("ok \ud83d end", "ok \ufffd end"), ("\ud83d\udd25", "🔥"), ("f\udcff.txt", "f\ufffd.txt")],
)
def test_lone_surrogates_never_leave_a_tool(text: str, clean: str) -> None:
    assert as_result(text).content == clean
    assert as_result([text]).content == f'["{clean}"]'
    assert as_result({text: 1}).content == f'{{"{clean}":1}}'
    assert as_result(ToolResult(content=text, details=[text])) == ToolResult(
        content=clean, details=[clean]
    )


def test_a_tool_s_own_result_stays_as_it_is() -> None:
    result = ToolResult(content=[TEXT, "x"], details={"n": 1}, is_error=True, terminate=True)
    assert as_result(result) == result
    assert as_result(ToolResult(content=[])) == ToolResult(content=[])


def test_a_result_with_content_that_is_none_is_an_error() -> None:
    wrong: Any = {"a": 1}
    assert as_result(ToolResult(content=wrong)).is_error
    assert as_result(ToolResult(content=[{"type": "text", "text": {1}}])).is_error


def test_details_without_a_json_form_leave_a_note() -> None:
    assert details_of({"a": Point(1)}) == {"a": {"x": 1, "tags": []}}
    assert details_of([object()]) == {
        "note": "left out: a value of type object at [0], which has no JSON form"
    }


def test_details_hold_no_number_that_a_checkpoint_refuses() -> None:
    assert details_of([2**63 - 1, 2**63, -(2**63)]) == [2**63 - 1, str(2**63), str(-(2**63))]


# Texts are cleaned of halves of pairs and of NUL, which is tested above.
clean_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_texts, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_every_json_value_is_copied_unchanged(value: Any) -> None:
    copy = json_ready(value)
    assert copy == value
    assert json.dumps(copy, sort_keys=True) == json.dumps(value, sort_keys=True)
