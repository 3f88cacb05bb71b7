"""Which bytes are text, and which text they are."""

import codecs
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.tools.decoding import SAMPLE, decoded, text_of


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain\n", "plain\n"),
        ("é 🔥".encode(), "é 🔥"),
        (b"caf\xe9!", "caf\ufffd!"),
        (b"cut \xe4\xb8", "cut \ufffd"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (codecs.BOM_UTF8 + b"x\r\n", "x\n"),
        ("é\r\n".encode("utf-16"), "é\n"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "é"),
        ("é".encode("utf-32"), "é"),
        (codecs.BOM_UTF16_LE + b"a\x00b", "a\ufffd"),
        (b"a\x00b", None),
        (b"\x89PNG\r\n\x1a\n\x00\x00", None),
        ("no mark".encode("utf-16-le"), None),
    ],
)
def test_bytes_become_text_or_are_binary(data: bytes, text: str | None) -> None:
    assert decoded(data) == text
    stream = text_of(io.BytesIO(data))
    assert (stream.read() if stream else None) == text


def test_a_nul_far_behind_the_start_does_not_make_a_file_binary() -> None:
    assert decoded(b"x" * SAMPLE + b"\0") == "x" * SAMPLE + "\0"


@given(st.binary())
def test_any_bytes_are_text_or_binary_and_the_stream_agrees(data: bytes) -> None:
    stream = text_of(io.BytesIO(data))
    assert (stream.read() if stream else None) == decoded(data)
