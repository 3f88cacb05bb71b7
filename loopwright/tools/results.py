"""What a body returned, made into a ToolResult: text, JSON, content blocks, or a clear refusal.

What langchain tools return of their own kinds (ToolMessage, Command) is read in `answers`.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import singledispatch
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from loopwright.text import clean_text
from loopwright.tools.contract import Content, ToolResult

MOST_DEPTH = 64
"""Containers inside containers that a returned value may have."""

Place = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

LARGEST_INTEGER = 2**63 - 1
"""LangGraph's serialiser refuses larger ones."""

_PAYLOADS = {
    "image_url": ("image_url",),
    "image": ("base64", "url", "file_id", "data", "source"),
    "audio": ("base64", "url", "file_id", "data", "source"),
    "video": ("base64", "url", "file_id", "data", "source"),
    "file": ("base64", "url", "file_id", "data", "source"),
}


class UnfitValueError(TypeError):
    """A value that has no JSON form; the message names its type and where it was found."""


def as_result(value: Any) -> ToolResult:
    """The result that a returned value stands for. Never raises; what does not fit is an error.

    Text stays as it is, None is "", a non-empty list of content blocks (with at least one block of
    text or media) is content, every other JSON value is compact JSON with sorted keys. Dataclasses
    and pydantic models become objects; dates, UUIDs, paths, decimals and enums their usual text.
    Bytes, sets and other objects are an error that names the type, never a `repr`.
    """
    if isinstance(value, ToolResult):
        return tidy(value)
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult(content=clean_text(value))
    try:
        return ToolResult(content=_content(value))
    except UnfitValueError as error:
        return error_result(f"The tool returned {error}.")


def error_result(text: str) -> ToolResult:
    """The result of a call that went wrong."""
    return ToolResult(content=clean_text(text), is_error=True)


def json_ready(value: Any) -> Any:
    """A copy of `value` in plain JSON values. Raises UnfitValueError for what has no JSON form."""
    return _ready(value, ())


def details_of(value: Any) -> Any:
    """`value` in plain JSON values; what has no JSON form is left out with a note in its place.

    A whole number that a checkpoint cannot hold becomes text.
    """
    try:
        return _storable(json_ready(value))
    except UnfitValueError as error:
        return {"note": f"left out: {error}"}


def _storable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    is_huge = isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER
    return str(value) if is_huge else value


def tidy(result: ToolResult) -> ToolResult:
    """A tool's or a hook's own ToolResult in the form that the contract promises to those who store
    it."""
    content = result.content
    if content is None or isinstance(content, str):
        content = clean_text(content or "")
    elif isinstance(content, list) and all(isinstance(item, str | dict) for item in content):
        try:
            content = json_ready(content)
        except UnfitValueError as error:
            return error_result(f"The tool returned a result whose content holds {error}.")
    else:
        return error_result(f"The tool returned a result whose content is {_named(content)}.")
    details, usage = details_of(result.details), details_of(result.usage)
    return dataclasses.replace(result, content=content, details=details, usage=usage)


def _content(value: Any) -> Content:
    ready = json_ready(value)
    if isinstance(ready, str):
        return ready
    if _is_content(ready):
        return list(ready)
    return json.dumps(ready, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _is_content(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    blocks = [item for item in value if not isinstance(item, str)]
    return bool(blocks) and all(map(_is_block, blocks))


def _is_block(item: Any) -> bool:
    """Stricter than its `type`: a list of `{"type": "file", "name": ...}` is data, not content."""
    if not isinstance(item, dict):
        return False
    if item.get("type") == "text":
        return isinstance(item.get("text"), str)
    return any(key in item for key in _PAYLOADS.get(str(item.get("type")), ()))


@singledispatch
def _ready(value: Any, place: Place) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _check_depth(place)
        fields = dataclasses.fields(value)
        return {f.name: _ready(getattr(value, f.name), (*place, f.name)) for f in fields}
    raise UnfitValueError(f"{_named(value)}{_at(place)}, which has no JSON form")


@_ready.register(type(None))
@_ready.register(bool)
def _constant(value: Any, place: Place) -> Any:
    return value


@_ready.register
def _text(value: str, place: Place) -> str:
    return clean_text(str.__str__(value))


@_ready.register(int)
@_ready.register(Integral)
def _whole(value: Any, place: Place) -> int:
    return int(value)


@_ready.register(float)
@_ready.register(Real)
def _real(value: Any, place: Place) -> float:
    if not math.isfinite(value):
        raise UnfitValueError(f"the number {float(value)}{_at(place)}, which has no JSON form")
    return float(value)


@_ready.register
def _member(value: Enum, place: Place) -> Any:
    return _ready(value.value, place)


@_ready.register(date)
@_ready.register(time)
@_ready.register(timedelta)
@_ready.register(UUID)
@_ready.register(Decimal)
def _scalar(value: Any, place: Place) -> Any:
    return to_jsonable_python(value)


@_ready.register
def _path(value: PurePath, place: Place) -> str:
    return clean_text(str(value))


@_ready.register
def _model(value: BaseModel, place: Place) -> Any:
    try:
        return _ready(value.model_dump(mode="json"), place)
    except PydanticSerializationError as error:
        raise UnfitValueError(f"{_named(value)}{_at(place)}, which has no JSON form") from error


@_ready.register(list)
@_ready.register(tuple)
def _array(value: list[Any] | tuple[Any, ...], place: Place) -> list[Any]:
    _check_depth(place)
    return [_ready(item, (*place, index)) for index, item in enumerate(value)]


@_ready.register(Mapping)
def _object(value: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    _check_depth(place)
    return {_key(key, place): _ready(item, (*place, str(key))) for key, item in value.items()}


def _key(key: Any, place: Place) -> str:
    plain = key.value if isinstance(key, Enum) else key
    if isinstance(plain, str):
        return clean_text(plain)
    if plain is None or isinstance(plain, bool | int | float):
        return json.dumps(plain)
    raise UnfitValueError(f"an object with {_named(key)} as a key{_at(place)}")


def _check_depth(place: Place) -> None:
    """Also the end of a value that contains itself."""
    if len(place) > MOST_DEPTH:
        raise UnfitValueError(f"a value nested more than {MOST_DEPTH} deep")


def _named(value: Any) -> str:
    return f"a value of type {type(value).__qualname__}"


def _at(place: Place) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place[:8])
    return f" at {''.join(steps).lstrip('.')[:80]}" if place else ""
