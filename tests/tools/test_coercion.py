"""Which values are converted to the type that a schema asks for, and which are left alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from loopwright.tools.coercion import Coercion


def coerced(value: Any, schema: dict[str, Any], **options: bool) -> Any:
    return Coercion(Draft202012Validator(schema), **options).apply(value)


def field(value: Any, schema: Any, *, required: bool = True, **options: bool) -> Any:
    """The one field of an object, `absent` if it is gone."""
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"] * required}
    return coerced({"v": value}, whole, **options).get("v", "absent")


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("number", "1.5", 1.5),
        ("number", " -2e3 ", -2000.0),
        ("number", "007", 7.0),
        ("number", True, 1),
        ("number", "x", "x"),
        ("number", "", ""),
        ("number", "NaN", "NaN"),
        ("number", "1e999", "1e999"),
        ("number", "1_000", "1_000"),
        ("integer", "7", 7),
        ("integer", "40.0", 40),
        ("integer", 40.0, 40),
        ("integer", "1.5", "1.5"),
        ("integer", 1.5, 1.5),
        ("integer", False, 0),
        ("string", 5, "5"),
        ("string", 1.5, "1.5"),
        ("string", True, "true"),
        ("string", None, None),
        ("string", {"a": 1}, {"a": 1}),
        ("string", '{"a":1}', '{"a":1}'),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("boolean", 1, True),
        ("boolean", 0.0, False),
        ("boolean", "yes", "yes"),
        ("boolean", 2, 2),
        ("array", '[{"old":"a"}]', [{"old": "a"}]),
        ("array", "tea", "tea"),
        ("array", '{"a":1}', '{"a":1}'),
        ("array", "[NaN]", "[NaN]"),
        ("object", '{"kind":"file"}', {"kind": "file"}),
        ("object", "[1]", "[1]"),
    ],
)
def test_a_value_is_converted_where_its_meaning_is_certain(
    kind: str, value: Any, wanted: Any
) -> None:
    converted = field(value, {"type": kind})
    assert (converted, type(converted)) == (wanted, type(wanted))


def test_the_first_type_that_a_value_can_become_is_taken() -> None:
    assert field("5", {"type": ["integer", "null"]}) == 5
    assert field("5", {"type": ["string", "integer"]}) == "5"
    assert field(1.5, {"type": ["number", "integer"]}) == 1.5


def test_arrays_and_nested_objects_are_gone_through() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert field([{"n": "1"}, {"n": 2}], {"type": "array", "items": inner}) == [{"n": 1}, {"n": 2}]
    assert field('[{"n":"1"}]', {"type": "array", "items": inner}) == [{"n": 1}]
    pair = {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}
    assert field(["1", 2, 3], pair) == [1, "2", "3"]
    assert field({"z": "1"}, {"additionalProperties": {"type": "integer"}}) == {"z": 1}


def test_a_union_keeps_what_fits_any_branch() -> None:
    union = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert field("5", union) == "5"
    assert field("5", {"oneOf": [{"type": "integer"}, {"type": "null"}]}) == 5
    assert field("x", {"anyOf": [{"type": "integer"}, {"type": "null"}]}) == "x"
    assert field("5", {"allOf": [{"type": "integer"}, {"minimum": 1}]}) == 5


def test_a_null_that_an_optional_field_may_not_be_is_dropped() -> None:
    assert field(None, {"type": "string"}, required=False) == "absent"
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert field(None, nullable, required=False) is None
    assert coerced({"z": None}, {"type": "object", "properties": {}}) == {"z": None}


@pytest.mark.parametrize(
    ("kind", "filled"), [("string", ""), ("number", 0), ("boolean", False), ("array", None)]
)
def test_a_null_for_a_required_field_is_filled_only_if_that_is_asked_for(
    kind: str, filled: Any
) -> None:
    assert field(None, {"type": kind}) is None
    assert field(None, {"type": kind}, fill_nulls=True) == filled


def test_references_are_followed_and_circles_of_them_end() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/A~1B"}, "c": {"$ref": "#/$defs/C"}},
        "$defs": {"A/B": {"type": "integer"}, "C": {"$ref": "#/$defs/C"}},
    }
    assert coerced({"n": "1", "c": "2"}, schema) == {"n": 1, "c": "2"}


@given(
    st.dictionaries(
        st.sampled_from(["n", "s", "b", "l"]),
        st.one_of(st.integers(), st.text(), st.booleans(), st.lists(st.integers())),
    )
)
def test_a_value_that_fits_is_never_changed(value: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "b": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "integer"}},
        },
    }
    converted = coerced(value, schema)
    if Draft202012Validator(schema).is_valid(value):
        assert converted == value
    assert coerced(converted, schema) == converted
