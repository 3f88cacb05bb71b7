"""The builder language: what each builder stands for, and that an unknown one is refused."""

import math
from typing import Any

import pytest

from tests.conformance.builders import UNDEFINED, expand


@pytest.mark.parametrize(
    ("short", "value"),
    [
        ({"$str": {"unit": "ab", "n": 2}}, "abab"),
        ({"$list": {"n": 2, "value": {"$str": {"unit": "a", "n": 2}}}}, ["aa", "aa"]),
        ({"$fields": {"n": 2, "prefix": "k", "value": 0}}, {"k0": 0, "k1": 0}),
        ({"$nest": {"n": 2, "kind": "object", "key": "k", "leaf": {}}}, {"k": {"k": {}}}),
        ({"$nest": {"n": 2, "kind": "array", "leaf": 1}}, [[1]]),
        ({"$concat": ["a", {"$str": {"unit": "b", "n": 2}}]}, "abb"),
        ({"$special": "undefined"}, UNDEFINED),
        ([0, {"$each": {"n": 2, "item": {"id": "u$i", "at": ["$i"]}}}, 9],
         [0, {"id": "u0", "at": ["0"]}, {"id": "u1", "at": ["1"]}, 9]),
        ({"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}),
        ({"a": [{"b": {"$list": {"n": 1, "value": None}}}]}, {"a": [{"b": [None]}]}),
    ],
)  # fmt: skip
def test_a_builder_stands_for_its_value(short: Any, value: Any) -> None:
    assert expand(short) == value


def test_values_that_are_not_json_are_built() -> None:
    assert math.isnan(expand({"$special": "nan"}))
    kinds = [type(expand({"$special": name})) for name in ("bytes", "set", "inf")]
    assert kinds == [bytes, set, float]


def test_copies_are_apart_from_each_other() -> None:
    first, second = expand({"$list": {"n": 2, "value": {}}})
    first["k"] = 1
    assert second == {}


def test_an_unknown_builder_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\$lst"):
        expand([{"$lst": {"n": 1}}])
