"""A serializer that moves stored values without making objects of them.

What a value means, and whether its type may be revived, is not asked: its bytes stay what they are.
"""

from dataclasses import dataclass, fields
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_DELTA_SNAPSHOT,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # its only name
from langgraph.types import Overwrite

from loopwright.state.branches import USUAL, Typed

_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_REPLACE_SURROGATES
)


@dataclass(frozen=True, slots=True)
class Unread:
    """A value of some type as it is stored: msgpack's code of an extension, and its bytes."""

    code: int
    data: bytes


class UnreadSerializer:
    """Lists, dicts and plain values are read as LangGraph's serializer reads them, all others stay
    `Unread`, so that lists can be taken apart and their elements compared.

    What was stored in another way than msgpack is brought into it, and never unpickled: raises
    NotImplementedError for a pickle.
    """

    def __init__(self) -> None:
        self._usual = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> Typed:
        if obj is None or isinstance(obj, bytes | bytearray):
            return self._usual.dumps_typed(obj)
        return USUAL, _pack(obj)

    def loads_typed(self, data: Typed) -> Any:
        kind, body = data
        if kind == USUAL:
            return _unpack(body)
        value = self._usual.loads_typed(data)
        if kind == "json":
            return self.loads_typed(self._usual.dumps_typed(value))
        return value


def _pack(obj: Any) -> bytes:
    return ormsgpack.packb(obj, default=_extension, option=_OPTIONS)


def _unpack(body: bytes) -> Any:
    return ormsgpack.unpackb(body, ext_hook=_unread, option=ormsgpack.OPT_NON_STR_KEYS)


def _unread(code: int, data: bytes) -> Any:
    return _DeltaSnapshot(_unpack(data)) if code == EXT_DELTA_SNAPSHOT else Unread(code, data)


def _extension(obj: Any) -> ormsgpack.Ext:
    """As LangGraph's serializer writes these."""
    if isinstance(obj, Unread):
        return ormsgpack.Ext(obj.code, obj.data)
    if isinstance(obj, _DeltaSnapshot):
        return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, _pack(obj.value))
    if isinstance(obj, Overwrite):
        known = {field.name: getattr(obj, field.name) for field in fields(obj)}
        named = (type(obj).__module__, type(obj).__name__, known)
        return ormsgpack.Ext(EXT_CONSTRUCTOR_KW_ARGS, _pack(named))
    raise TypeError(f"{type(obj).__name__} was not read from a file")
