"""Which arguments are let through to a tool, and what is said about the others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.errors import ConfigurationError
from loopwright.tools.arguments import (
    MOST_FAULT_TEXT,
    MOST_FAULTS,
    ArgumentRules,
    InvalidArguments,
    check_schema,
    validate,
    violations,
)
from loopwright.tools.contract import Tool, ToolContext, ToolResult

STRICT = ArgumentRules(depth=32, values=257, entries=256, characters=4096)
"""The bounds of S0-13."""


async def nothing(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult()


def with_schema(schema: dict[str, Any]) -> Tool:
    return Tool(name="add", description="", parameters=schema, execute=nothing)


ANY = with_schema({"type": "object"})
ADD = with_schema(
    {
        "type": "object",
        "properties": {
            "x": {"type": "number"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}},
                    "required": ["old"],
                },
            },
            "mode": {"enum": ["fast", "slow"]},
            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["x"],
    }
)


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"x": leaf}
    return leaf


@pytest.mark.parametrize(
    ("arguments", "broken"),
    [
        ({}, []),
        ({"x": "a" * 4095}, []),
        ({"x": "a" * 4096}, ["STRING"]),
        ({"x": "🔥" * 4095}, []),
        ({"k" * 4000: "a" * 97}, ["STRING"]),
        ({"x": [0] * 255}, []),
        ({"x": [0] * 256}, ["ENTRIES", "VALUES"]),
        ({f"k{n}": 0 for n in range(256)}, []),
        ({f"k{n}": 0 for n in range(257)}, ["ENTRIES", "VALUES"]),
        (nested(32, {}), []),
        (nested(33, {}), ["DEPTH"]),
        (nested(33, 1), []),
        ([1], ["TYPE"]),
        (None, ["TYPE"]),
        ('{"a":1}', ["TYPE"]),
        ({"x": float("nan")}, ["TYPE"]),
        ({"x": float("-inf")}, ["TYPE"]),
        ({"x": {1}}, ["TYPE"]),
        ({"x": b""}, ["TYPE"]),
        ({1: "x"}, ["TYPE"]),
        ({"a": None, "b": True, "c": 1.5, "d": -0.0, "e": ""}, []),
    ],
)
def test_arguments_are_counted_as_the_course_counts(arguments: Any, broken: list[str]) -> None:
    assert sorted(violations(arguments, STRICT)) == broken


def test_arguments_that_contain_themselves_are_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop["b"] = loop
    assert violations(loop, STRICT)
    with pytest.raises(InvalidArguments):
        validate(ANY, loop)


def test_a_large_file_fits_the_default_bounds() -> None:
    assert validate(ANY, {"content": "x" * 3_000_000})
    with pytest.raises(InvalidArguments, match="more than 4,000,000 characters"):
        validate(ANY, {"content": "x" * 4_000_000})


def test_each_fault_is_one_line_with_path_and_reason() -> None:
    with pytest.raises(InvalidArguments) as refused:
        validate(ADD, {"edits": [{"old": "a"}, {"old": []}, {}], "mode": "?", "size": "big"})
    first, *faults = str(refused.value).splitlines()
    assert first == 'Validation failed for tool "add":'
    assert sorted(faults) == [
        "- arguments: 'x' is a required property",
        "- edits[1].old: [] is not of type 'string'",
        "- edits[2]: 'old' is a required property",
        "- mode: '?' is not one of ['fast', 'slow']",
        "- size: 'big' is not valid under any of the given schemas",
    ]


def test_the_text_of_an_error_is_bounded() -> None:
    with pytest.raises(InvalidArguments) as refused:
        validate(ADD, {"x": "a" * 100_000, "edits": [{}] * 1000})
    lines = str(refused.value).splitlines()
    assert len(lines) == MOST_FAULTS + 2
    assert lines[-1] == f"- ... and {1001 - MOST_FAULTS} more"
    assert max(map(len, lines)) <= MOST_FAULT_TEXT + 10


def test_a_field_that_the_schema_does_not_name_passes_unless_it_is_closed() -> None:
    closed = with_schema({"type": "object", "properties": {}, "additionalProperties": False})
    assert validate(ADD, {"x": 1, "more": 2}) == {"x": 1, "more": 2}
    with pytest.raises(InvalidArguments, match="'more' was unexpected"):
        validate(closed, {"more": 2})


def test_rules_without_coercion_take_arguments_as_they_are() -> None:
    assert validate(ADD, {"x": "5"}) == {"x": 5}
    with pytest.raises(InvalidArguments, match="x: '5' is not of type 'number'"):
        validate(ADD, {"x": "5"}, ArgumentRules(coerce=False))


def test_references_are_followed_inside_the_schema_only() -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
    }
    inside = with_schema({"$ref": "#/$defs/N", "$defs": {"N": tree}})
    assert validate(inside, {"kids": [{"kids": "[]"}]}) == {"kids": [{"kids": []}]}
    outside = with_schema({"properties": {"a": {"$ref": "http://localhost:1/schema.json"}}})
    with pytest.raises(InvalidArguments, match="schema is broken"):
        validate(outside, {"a": 1})


def test_json_text_nested_too_deeply_is_an_error_of_the_call() -> None:
    tree = {"type": "array", "items": {"$ref": "#/$defs/N"}}
    deep = with_schema({"properties": {"a": {"$ref": "#/$defs/N"}}, "$defs": {"N": tree}})
    with pytest.raises(InvalidArguments):
        validate(deep, {"a": "[" * 900 + "]" * 900})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [({"type": "string"}, "type object"), ({"type": "object", "required": "x"}, "required")],
)
def test_parameters_that_are_no_object_schema_are_a_configuration_error(
    schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"tool 'add'.*{reason}"):
        check_schema(with_schema(schema))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["x", "edits", "mode", "size", "z"]), json_values))
def test_validating_changes_nothing_given_and_is_stable(arguments: dict[str, Any]) -> None:
    before = json.dumps(arguments)
    try:
        checked = validate(ADD, arguments)
    except InvalidArguments as error:
        assert str(error).startswith('Validation failed for tool "add":\n- ')
    else:
        assert validate(ADD, checked) == checked
    assert json.dumps(arguments) == before
