"""Converts argument values to the types that a JSON schema asks for, where the meaning is certain.

What still does not fit afterwards is told to the model by `arguments`.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jsonschema.protocols import Validator

from loopwright.tools.contract import JsonObject

MOST_REFERENCES = 16
"""References that lead to one another before a schema counts as broken and is left alone."""

_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
_UNCHANGED = object()
_EMPTY: JsonObject = {"string": "", "number": 0, "integer": 0, "boolean": False}


def copied(value: Any) -> Any:
    """A copy of a JSON value that shares no container with it."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Coercion:
    """The conversion of Pi (S2) for one schema.

    Numeric text and booleans become numbers, numbers and booleans text, "true"/"false" and 1/0
    booleans, JSON text an array or object where the schema asks for one. A null for an optional
    field that may not be null is dropped. A union's value stays if it fits any branch. Values that
    fit already and fields that the schema does not name are never changed.
    """

    validator: Validator
    fill_nulls: bool = False

    def apply(self, value: Any) -> Any:
        """A converted copy of `value`."""
        return self._converted(value, self.validator.schema)

    def _converted(self, value: Any, schema: Any) -> Any:
        schema = self._resolved(schema)
        if not isinstance(schema, dict):
            return copied(value)
        for branch in schema.get("allOf", ()):
            value = self._converted(value, branch)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            value = self._union(value, branches)
        value = _typed(value, schema.get("type"))
        if isinstance(value, dict):
            return self._object(value, schema)
        if isinstance(value, list):
            return self._array(value, schema)
        return value

    def _resolved(self, schema: Any) -> Any:
        """Follows references into the schema itself; any other is the validator's to refuse."""
        for _ in range(MOST_REFERENCES):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema
            target: Any = self.validator.schema
            for step in schema["$ref"].split("/")[1:]:
                name = step.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, dict) else None
            if not schema["$ref"].startswith("#"):
                return None
            schema = target
        return None

    def _union(self, value: Any, branches: list[Any]) -> Any:
        if any(self._fits(value, branch) for branch in branches):
            return value
        for branch in branches:
            candidate = self._converted(value, branch)
            if self._fits(candidate, branch):
                return candidate
        return value

    def _fits(self, value: Any, schema: Any) -> bool:
        return self.validator.evolve(schema=schema).is_valid(value)

    def _object(self, value: JsonObject, schema: JsonObject) -> JsonObject:
        known = schema.get("properties") or {}
        rest = schema.get("additionalProperties")
        converted = {}
        for name, item in value.items():
            field = known.get(name, rest)
            if item is None and name in known and not self._fits(None, field):
                item = self._null(field, required=name in schema.get("required", ()))
            if item is not _UNCHANGED:
                converted[name] = self._converted(item, field)
        return converted

    def _null(self, field: Any, *, required: bool) -> Any:
        """What a null becomes that the field does not take; `_UNCHANGED` drops the field."""
        if not required:
            return _UNCHANGED
        kind = field.get("type") if isinstance(field, dict) else None
        return _EMPTY.get(kind) if self.fill_nulls and isinstance(kind, str) else None

    def _array(self, value: list[Any], schema: JsonObject) -> list[Any]:
        items = schema.get("items")
        first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = None if isinstance(items, list) else items
        return [
            self._converted(item, first[index] if index < len(first) else rest)
            for index, item in enumerate(value)
        ]


def _typed(value: Any, types: Any) -> Any:
    """`value` as one of these types; unchanged if it is one, or if no conversion is certain."""
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    if any(_is(value, name) for name in names):
        return int(value) if names == ["integer"] else value
    for name in names:
        if (converted := _CONVERSIONS.get(name, _no_conversion)(value)) is not _UNCHANGED:
            return converted
    return value


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool) or value is None:
        return name == ("null" if value is None else "boolean")
    if isinstance(value, float):
        return name == "number" or (name == "integer" and value.is_integer())
    return name in {int: ("integer", "number"), str: ("string",), list: ("array",)}.get(
        type(value), ("object",)
    )


def _no_conversion(value: Any) -> Any:
    return _UNCHANGED


def _to_number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str) or not _NUMBER.fullmatch(value) or len(value) > 400:
        return _UNCHANGED
    number = json.loads(value) if _starts_plain(value) else float(value)
    return number if math.isfinite(number) else _UNCHANGED


def _starts_plain(text: str) -> bool:
    """JSON has no leading zeros, but "007" is a number for everyone else."""
    digits = text.strip().lstrip("-")
    return digits[:1] != "0" or not digits[1:2].isdigit()


def _to_integer(value: Any) -> Any:
    number = _to_number(value)
    if number is _UNCHANGED or number != int(number):
        return _UNCHANGED
    return int(number)


def _to_text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else _UNCHANGED


def _to_boolean(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value, _UNCHANGED)
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return _UNCHANGED


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _parsed(kind: type) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            return _UNCHANGED
        try:
            parsed = json.loads(value, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return _UNCHANGED
        return parsed if isinstance(parsed, kind) else _UNCHANGED

    return parse


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "integer": _to_integer,
    "string": _to_text,
    "boolean": _to_boolean,
    "array": _parsed(list),
    "object": _parsed(dict),
}
