"""Any value as JSON that may be written down: without secrets, of bounded size, valid.

What is fitted twice stays as it was the first time, so that a recorded value and a replayed one
can be compared.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from langchain_core.messages import BaseMessage, message_to_dict

from loopwright.text import clean_text

MOST_ITEMS = 10_000
"""Values in one field: what stands behind them is left out."""

LONGEST_NAME = 200
"""Characters of the name of a value in an object."""

SHORT = 64
"""Characters of a text that is neither counted nor cut: names, ids and words keep their meaning."""

DEEPEST = 60
"""Containers that may stand inside one another."""

_DROPPED = ("type", "artifact")
"""Of a message: told already, and what a tool gives to people and programs only."""


def row(message: BaseMessage) -> dict[str, Any]:
    """A message in the form that `messages_from_dict` takes, without what is empty.

    Its calls and its content come first: what comes later is cut earlier.
    """
    dumped = message_to_dict(message)
    data: dict[str, Any] = dumped["data"]
    empty: tuple[Any, ...] = (None, "", [], {}, False)
    told = {"tool_calls", "invalid_tool_calls", "content", *_DROPPED}
    calls = {name: data.get(name) for name in ("tool_calls", "invalid_tool_calls")}
    first = {**{name: made for name, made in calls.items() if made}, "content": message.content}
    rest = {name: v for name, v in data.items() if name not in told and v not in empty}
    return {"type": dumped["type"], "data": {**first, **rest}}


class Fitted:
    """One value, fitted: `value`, and whether something of it `was_cut`.

    Texts are redacted first and cut then, so that no half of a secret is left. `characters` bounds
    all texts together that are not short. Messages become rows; of what is no JSON only the type is
    told.
    """

    def __init__(self, value: Any, redact: Callable[[str], str], characters: int) -> None:
        self._redact = redact
        self._characters = characters
        self._items = MOST_ITEMS
        self.was_cut = False
        self.value = self._fitted(value, DEEPEST)

    def _fitted(self, value: Any, depth: int) -> Any:
        self._items -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**64 else self._text(hex(value))
        if isinstance(value, float):
            return value if isfinite(value) else None
        if isinstance(value, BaseMessage):
            value = row(value)
        if isinstance(value, Mapping) and depth:
            return self._mapping(value, depth - 1)
        if isinstance(value, list | tuple | set | frozenset) and depth:
            return self._list(list(value), depth - 1)
        return self._text(value if isinstance(value, str) else f"<{type(value).__name__}>")

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        fitted: dict[str, Any] = {}
        for name, item in value.items():
            if self._is_full():
                break
            name = clean_text(self._redact(str(name)))[:LONGEST_NAME]
            fitted[name] = self._fitted(item, depth)
        return fitted

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        fitted: list[Any] = []
        for item in value:
            if self._is_full():
                break
            fitted.append(self._fitted(item, depth))
        return fitted

    def _is_full(self) -> bool:
        self.was_cut = self.was_cut or self._items <= 0
        return self._items <= 0

    def _text(self, text: str) -> str:
        clean = clean_text(self._redact(text))
        if len(clean) <= SHORT:
            return clean
        if len(clean) > self._characters:
            self.was_cut = True
            clean = clean[: max(self._characters, SHORT)]
        self._characters -= len(clean)
        return clean
