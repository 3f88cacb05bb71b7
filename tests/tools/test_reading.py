"""Which lines of a file are shown, and what is said about the others."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.tools import reading
from loopwright.tools.reading import MOST_LINE, MOST_TEXT, page, shortened


def stream(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=None)


def shown(text: str, start_line: int = 1, limit_lines: int = 1000) -> str:
    return page(stream(text), start_line, limit_lines).text()


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", "a\r\nb\r\n", "a\rb"])
def test_a_whole_file_is_shown_without_a_marker(text: str) -> None:
    assert shown(text) == "a\nb"


def test_a_file_of_blank_lines_keeps_them() -> None:
    assert shown("\n\n\n") == "\n\n"


def test_an_empty_file_is_said_to_be_empty() -> None:
    assert shown("") == "[the file is empty]"


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_part_says_which_lines_it_is_and_how_to_read_on(end: str) -> None:
    text = "\n".join(str(n) for n in range(1, 6)) + end
    assert shown(text, 1, 2) == "1\n2\n[lines 1-2 of 5; 3 lines left: read on with start_line=3]"
    assert shown(text, 3, 2) == "3\n4\n[lines 3-4 of 5; 1 lines left: read on with start_line=5]"
    assert shown(text, 5, 2) == "5\n[lines 5-5 of 5: the end of the file]"
    with pytest.raises(ValueError, match="has only 5 lines"):
        shown(text, 6)
    with pytest.raises(ValueError, match="has only 5 lines"):
        shown(text, 600)


def test_the_text_of_one_answer_is_bounded() -> None:
    text = shown(("x" * 99 + "\n") * 10_000, limit_lines=5000)
    assert MOST_TEXT <= len(text) <= MOST_TEXT + MOST_LINE + 200
    assert text.endswith("read on with start_line=608]")


def test_a_huge_line_is_cut_with_a_mark_and_the_next_one_is_whole() -> None:
    first, second = shown("x" * (MOST_LINE + 70_000) + "\nnext").split("\n")
    assert first.startswith("x" * MOST_LINE + " [line cut, 70,000 more characters")
    assert second == "next"
    assert shown("x" * MOST_LINE + "\n") == "x" * MOST_LINE
    assert "[line cut, 1 more" in shown("x" * (MOST_LINE + 1))


def test_a_file_too_large_to_count_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SECONDS_TO_COUNT", -1.0)
    assert shown("a\nb\nc", 1, 1) == (
        "a\n[lines 1-1 of a very large file; more lines left: read on with start_line=2]"
    )
    with pytest.raises(ValueError, match="only line 1 was reached"):
        shown("a\nb\nc\nd", 4)


def test_a_long_line_is_shortened_around_what_matters() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("a" * 10 + "X" + "b" * 10, 8, 10) == (
        "[8 characters left out] aaXbbbbb [5 characters left out]"
    )
    assert shortened("a" * 20, 8) == "aaaaaaaa [12 characters left out]"
    assert shortened("a" * 20, 8, 19) == "[12 characters left out] aaaaaaaa"


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=5)))
def test_reading_on_gives_every_line_once(lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    seen: list[str] = []
    while len(seen) < len(lines):
        part = page(stream(text), len(seen) + 1, 3)
        assert (part.first, part.total) == (len(seen) + 1, len(lines))
        seen += part.lines
    assert seen == lines
