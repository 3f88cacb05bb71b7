"""Text on its way to a terminal is harmless: no sequence, no control character, no trick."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.cli.text import call_text, clean, decoded, one_line, plain_text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x9b31mx", "31mx"),
        ("a\rb\x08c\x00", "abc"),
        ("abc\u202edef\u2066", "abcdef"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("é 说明 🙂", "é 说明 🙂"),
        ("[bold]kept[/bold] {x}", "[bold]kept[/bold] {x}"),
    ],
)
def test_what_could_act_on_a_terminal_is_removed(text: str, safe: str) -> None:
    assert clean(text) == safe


@given(st.lists(st.text(alphabet="\x1b[]0;m\x07\\P\x9bax\n"), max_size=6))
def test_no_way_of_cutting_a_text_into_pieces_lets_control_through(pieces: list[str]) -> None:
    printed = "".join(clean(piece) for piece in pieces)
    assert not [c for c in printed if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


def test_a_line_is_one_line_and_no_longer_than_wanted() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 50, 10) == "xxxxxxx..."


def test_a_call_is_told_in_one_line_whatever_its_arguments() -> None:
    assert call_text("read", {"path": "a\nb", "n": 1}) == r"read(path='a\nb', n=1)"
    assert call_text("read", "{broken") == "read('{broken')"


def test_content_blocks_are_told_by_text_or_type() -> None:
    blocks = ["a", {"type": "text", "text": "b"}, {"type": "image", "base64": "xxx"}]
    assert plain_text(blocks) == "a\nb\n[image]"


def test_bytes_of_an_argument_that_are_no_text_become_replacement_characters() -> None:
    assert decoded("caf\udce9") == "caf\ufffd"
