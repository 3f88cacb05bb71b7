"""Server-sent events: the same whatever the network's reads are, and nothing that is none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.providers.sse import EventReader, ServerEvent

BODY = (
    '\ufeffdata: {"a": "naïve 中文 🚀"}\r\n\r\n: a comment\n\nretry: 3000\n\nid: 7\n\n'
    "event: ping\ndata:\n\ndata:no blank\n\nevent: error\rdata: one\rdata:  two\r\r"
    "unknown: field\ndata\n\ndata: [DONE]\n\n"
)
EVENTS = [
    ServerEvent("", '{"a": "naïve 中文 🚀"}'),
    ServerEvent("", "no blank"),
    ServerEvent("error", "one\n two"),
    ServerEvent("", "[DONE]"),
]


def read(body: bytes, cuts: list[int] | None = None) -> list[ServerEvent]:
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts or [])})
    reader = EventReader()
    parts = [body[a:b] for a, b in pairwise(places)]
    return [*(event for part in parts for event in reader.feed(part)), *reader.close()]


def test_comments_and_events_without_data_are_skipped() -> None:
    assert read(BODY.encode()) == EVENTS


@given(st.lists(st.integers(0, 10_000)))
def test_any_splitting_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    assert read(BODY.encode(), cuts) == EVENTS


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    body = BODY.encode()
    assert read(body, list(range(len(body)))) == EVENTS


@pytest.mark.parametrize("body", [b"data: last", b"data: last\n", b"data: last\r\n"])
def test_a_last_event_needs_no_blank_line(body: bytes) -> None:
    assert read(body) == [ServerEvent("", "last")]


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        read(b"data: \xff\n\n")
