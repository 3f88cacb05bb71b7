"""Bytes of a file as text for a model: byte order marks, bad bytes, line ends, binary files.

Which bytes are read and which lines are shown is decided by the tools that read files.
"""

import codecs
import io
from typing import BinaryIO

SAMPLE = 8192
"""Bytes at the start of a file that decide whether it is text."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # UTF-32's mark begins with UTF-16's and has to be looked for first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(start: bytes) -> str | None:
    """The encoding that the first bytes of a file tell; None for a binary file.

    A byte order mark decides. Without one it is UTF-8, or binary if there is a NUL byte.
    """
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    return None if b"\0" in start[:SAMPLE] else "utf-8"


def decoded(data: bytes) -> str | None:
    """The text of a whole file with `\\n` as line end, None if it is binary.

    Bytes that do not decode become U+FFFD; a byte order mark is not part of the text.
    """
    encoding = encoding_of(data)
    if encoding is None:
        return None
    text = data.decode(encoding, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def text_of(file: BinaryIO) -> io.TextIOWrapper | None:
    """The same as a stream from the start of an open file, for files of any size."""
    encoding = encoding_of(file.read(SAMPLE))
    if encoding is None:
        return None
    file.seek(0)
    return io.TextIOWrapper(file, encoding, "replace", newline=None)
