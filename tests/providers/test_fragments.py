"""Which call a fragment belongs to, on the streams that servers are known to send."""

import pytest

from loopwright.providers.fragments import CallRouter, Fragment

Piece = tuple[int | None, str | None, str | None, str]


def routed(*chunks: Piece | list[Piece]) -> list[tuple[str | None, str, str]]:
    """Id, name and text of the calls; a list stands for fragments in one chunk."""
    router = CallRouter()
    for number, chunk in enumerate(chunks):
        for piece in chunk if isinstance(chunk, list) else [chunk]:
            router.add(Fragment(*piece), number)
    return [(call.id, call.name, call.text) for call in router.calls]


ONE = [("a", "read", '{"x":1}')]
TWO = [("a", "read", '{"x":1}'), ("b", "read", '{"x":2}')]


@pytest.mark.parametrize(
    "chunks",
    [
        [(0, "a", "read", ""), (0, None, None, '{"x"'), (0, None, None, ":1}")],
        [(None, "a", "read", '{"x"'), (None, None, None, ":1}")],
        [(0, "a", "read", '{"x"'), (0, "a", "read", ":1}"), (0, "a", "read", "")],
        [(0, "a", "read", '{"x"'), (0, "fresh", None, ":1}"), (0, "fresher", None, "")],
        [(0, "a", "read", '{"x"'), (0, "fresh", "read", ":1}")],
        [(0, "a", "read", ""), (0, "fresh", "read", '{"x":1}')],
        [(None, "a", "read", '{"x"'), (None, "fresh", None, ":1}")],
        [(0, "a", "re", ""), (0, None, "ad", ""), (0, None, None, '{"x":1}')],
        [(0, "a", None, ""), (0, None, "read", '{"x":1}')],
        [(0, None, "read", '{"x"'), (0, "a", None, ":1}")],
        [(0, "a", "read", '{"x":1}'), (0, None, None, "")],
        [(0, "a", "read", '{"x"'), (7, None, None, ":1}")],
        [(None, None, None, ""), (0, "a", "read", '{"x":1}')],
    ],
)
def test_the_pieces_of_one_call_are_joined(chunks: list[Piece]) -> None:
    assert routed(*chunks) == ONE


@pytest.mark.parametrize(
    "chunks",
    [
        [(0, "a", "read", '{"x":1}'), (1, "b", "read", '{"x":2}')],
        [(0, "a", "read", '{"x":1}'), (0, "b", "read", '{"x":2}')],
        [
            *[(0, "a", "read", ""), (0, None, None, '{"x":1}')],
            *[(0, "b", "read", ""), (0, None, None, '{"x":2}')],
        ],
        [(None, "a", "read", '{"x":1}'), (None, "b", "read", '{"x":2}')],
        [[(None, "a", "read", '{"x":1}'), (None, "b", "read", '{"x":2}')]],
        [
            *[(0, "a", "read", '{"x":'), (1, "b", "read", '{"x":')],
            *[(0, None, None, "1}"), (1, None, None, "2}")],
        ],
        [(0, "a", "read", '{"x":1}'), (0, "b", "read", '{"x"'), (1, None, None, ":2}")],
        [(0, "a", "read", '{"x":'), (1, "b", "read", '{"x":2}'), (1, "a", None, "1}")],
        [(3, "a", "read", '{"x":1}'), (9, "b", "read", '{"x":2}')],
    ],
)
def test_the_pieces_of_two_calls_are_kept_apart(chunks: list[Piece | list[Piece]]) -> None:
    assert routed(*chunks) == TWO


def test_two_heads_without_ids_and_with_whole_arguments_are_two_calls() -> None:
    chunks: list[Piece] = [(0, None, "read", '{"x":1}'), (0, None, "read", '{"x":2}')]
    assert [text for _, _, text in routed(*chunks)] == ['{"x":1}', '{"x":2}']


def test_calls_without_arguments_in_one_chunk_are_different_calls() -> None:
    heads: list[Piece] = [(None, "a", "ping", ""), (None, "b", "ping", "")]
    assert routed(heads) == [("a", "ping", ""), ("b", "ping", "")]


def test_another_name_without_index_begins_another_call() -> None:
    assert routed((None, None, "ping", ""), (None, None, "pong", "")) == [
        (None, "ping", ""),
        (None, "pong", ""),
    ]


def test_an_id_that_is_used_twice_names_two_calls() -> None:
    expected = [("k", "read", '{"x":1}'), ("k", "read", '{"x":2}')]
    assert routed((0, "k", "read", '{"x":1}'), (0, "k", "read", '{"x":2}')) == expected
    numbered: list[Piece] = [(0, "k", "read", ""), (1, "k", "read", "")]
    assert routed(*numbered, (0, None, None, '{"x":1}'), (1, None, None, '{"x":2}')) == expected


def test_a_call_that_was_cut_is_not_completed_by_the_next_one() -> None:
    calls = routed((0, "a", "read", '{"x"'), (0, "b", "write", '{"x":2}'))
    assert calls == [("a", "read", '{"x"'), ("b", "write", '{"x":2}')]


def test_a_text_that_no_head_announced_becomes_a_call_without_a_name() -> None:
    assert routed((0, None, None, '{"x":1}')) == [(None, "", '{"x":1}')]
