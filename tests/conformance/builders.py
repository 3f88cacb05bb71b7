"""The builder language of the vectors: short forms for large or unusual values, and what they mean.

Which suites use it is their business; a value without builders is returned as it is.
"""

from collections.abc import Callable
from datetime import date
from typing import Any


class Undefined:
    """The value of a field that is there but has none, as JavaScript knows it."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()

SPECIAL: dict[str, Callable[[], Any]] = {
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "undefined": lambda: UNDEFINED,
    "bytes": lambda: b"bytes",
    "set": lambda: {1, 2},
    "date": lambda: date(2024, 1, 2),
}

SCHEMA_WORDS = frozenset({"$ref", "$defs", "$schema", "$id", "$anchor", "$comment"})
"""Keys of JSON Schema that look like builders."""


def expand(value: Any) -> Any:
    """The value with all builders in it replaced; raises ValueError for one that is unknown.

    Every part of the result is fresh: changing it changes nothing else.
    """
    if isinstance(value, list):
        return [item for part in value for item in _items(part)]
    if not isinstance(value, dict):
        return value
    name = next(iter(value)) if len(value) == 1 else ""
    if name in BUILDERS:
        return BUILDERS[name](value[name])
    if name.startswith("$") and name not in SCHEMA_WORDS:
        raise ValueError(f"unknown builder {name}")
    return {key: expand(item) for key, item in value.items()}


def _items(part: Any) -> list[Any]:
    """What one place in a list stands for: itself, or the copies that `$each` makes."""
    if not (isinstance(part, dict) and list(part) == ["$each"]):
        return [expand(part)]
    each = part["$each"]
    return [expand(_numbered(each["item"], i)) for i in range(each["n"])]


def _numbered(value: Any, i: int) -> Any:
    if isinstance(value, str):
        return value.replace("$i", str(i))
    if isinstance(value, list):
        return [_numbered(item, i) for item in value]
    if isinstance(value, dict):
        return {_numbered(key, i): _numbered(item, i) for key, item in value.items()}
    return value


def _nest(given: dict[str, Any]) -> Any:
    """`n` containers around the leaf."""
    value = expand(given["leaf"])
    for _ in range(given["n"]):
        value = [value] if given["kind"] == "array" else {given["key"]: value}
    return value


def _concat(parts: list[Any]) -> Any:
    whole, *others = [expand(part) for part in parts]
    for other in others:
        whole = whole + other
    return whole


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "$str": lambda given: given["unit"] * given["n"],
    "$list": lambda given: [expand(given["value"]) for _ in range(given["n"])],
    "$fields": lambda given: {
        f"{given['prefix']}{i}": expand(given["value"]) for i in range(given["n"])
    },
    "$nest": _nest,
    "$concat": _concat,
    "$special": lambda given: SPECIAL[given](),
}
