"""Text and JSON that can be stored and sent: valid Unicode without NUL, finite numbers.

Which texts are cleaned, and when, is decided where they are read or sent.
"""

from datetime import UTC, datetime
from math import isfinite
from typing import Any

REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """The same text as valid Unicode; the very same object if it was already.

    Halves of a surrogate pair that stand side by side become their character, a lone half becomes
    U+FFFD, and NUL, which databases and servers refuse, is removed.
    """
    if not _is_valid(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def joined(text: str) -> str:
    """The same text with the halves of surrogate pairs that stand side by side made one character.

    A lone half stays what it is: unlike `clean_text` this loses nothing.
    """
    if _is_valid(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def clean_json(value: Any) -> Any:
    """The same JSON value with clean texts and keys; what is clean already stays the same object.

    A number that JSON cannot hold (NaN, infinite) becomes null. Values that are not JSON are left.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list):
        items = [clean_json(item) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        pairs = {clean_json(key): clean_json(item) for key, item in value.items()}
        return value if _same_pairs(pairs, value) else pairs
    return value


def _is_valid(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _same_pairs(pairs: dict[Any, Any], value: dict[Any, Any]) -> bool:
    return len(pairs) == len(value) and all(
        a is b and pairs[a] is value[b] for a, b in zip(pairs, value, strict=True)
    )


def moment(seconds: float) -> str:
    """Unix time as an error tells it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
