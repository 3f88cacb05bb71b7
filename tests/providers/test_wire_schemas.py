"""Schemas as servers get them: what is refused is gone, and nothing that fits is forbidden."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from loopwright.providers.wire import simple_schema

NODE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}},
    },
    "required": ["name"],
}
MUTUAL = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/A"}},
    "$defs": {
        "A": {"type": "object", "properties": {k: {"$ref": "#/$defs/B"} for k in "xyz"}},
        "B": {"type": "object", "properties": {k: {"$ref": "#/$defs/A"} for k in "xyz"}},
    },
}
CASES: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({}, [{}, {"a": 1}]),
    ({"type": "object", "$ref": "#/$defs/N", "$defs": {"N": NODE}}, [{"name": "x", "kids": []}]),
    (MUTUAL, [{"a": {"x": {"y": {"z": {}}}}}]),
    ({"$ref": "#"}, [{"a": 1}]),
    ({"properties": {"a": {"$ref": "https://example.com/x"}}}, [{"a": [1]}]),
    ({"properties": {"a": {"type": ["string", "null", "integer"]}}}, [{"a": "x"}, {"a": 1}]),
    ({"properties": {"a": {"type": ["array", "null"]}}}, [{"a": [1]}]),
    ({"properties": {"a": {"enum": ["x", None]}}}, [{"a": "x"}]),
    ({"properties": {"a": {"const": 3}}}, [{"a": 3}]),
    ({"properties": {"a": True, "b": False}}, [{"a": 1}]),
    ({"properties": {"$ref": {"type": "string"}, "anyOf": {"type": "integer"}}}, [{"$ref": "x"}]),
    (
        {"properties": {"a": {"prefixItems": [{"type": "string"}, {"type": "integer"}]}}},
        [{"a": ["x", 1]}],
    ),
    ({"properties": {"a": {"items": [{"type": "string"}]}}}, [{"a": ["x"]}]),
    (
        {
            "oneOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}},
            ]
        },
        [{"a": "x"}, {"a": 1, "b": 2}],
    ),
    (
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}},
                {"properties": {"b": {}}, "required": ["b"]},
            ]
        },
        [{"a": "x", "b": 1}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "object", "additionalProperties": {"$ref": "#/$defs/S"}}},
            "$defs": {"S": {"type": "string"}},
        },
        [{"a": {"k": "v"}}],
    ),
]
REFUSED = {"$ref", "$defs", "definitions", "oneOf", "allOf", "not", "const", "prefixItems"}


def words(schema: Any) -> set[str]:
    """The words of a schema and its parts; names of fields are none."""
    found = set(schema)
    for word, value in schema.items():
        parts = value.values() if word == "properties" else value if word == "anyOf" else [value]
        for part in parts:
            found |= words(part) if isinstance(part, dict) else set()
    return found


@pytest.mark.parametrize(("schema", "fitting"), CASES)
def test_what_servers_refuse_is_gone_and_what_fits_still_fits(
    schema: dict[str, Any], fitting: list[dict[str, Any]]
) -> None:
    before = repr(schema)
    simple = simple_schema(schema)
    assert simple["type"] == "object" and "anyOf" not in simple and "properties" in simple
    assert not words(simple) & REFUSED
    validator = Draft202012Validator(simple)
    assert [list(validator.iter_errors(value)) for value in fitting] == [[] for _ in fitting]
    assert repr(schema) == before
    assert simple_schema(simple) == simple


def test_a_schema_that_would_grow_without_end_is_cut() -> None:
    names = [f"N{n}" for n in range(12)]
    fields = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {"properties": fields, "$defs": {n: {"properties": fields} for n in names}}
    assert len(str(simple_schema(schema))) < 200_000
