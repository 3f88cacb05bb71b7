"""What a search finds in one file, and how it ends on patterns without end."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.tools import searching
from loopwright.tools.searching import MOST_PATTERN, Search, matcher


def search(
    pattern: str, *, regex: bool = False, ignore_case: bool = False, **options: Any
) -> Search:
    wanted = matcher(pattern, is_regex=regex, ignore_case=ignore_case)
    return Search(wanted, **({"limit": 100, "seconds": 10.0} | options))


def found(made: Search, path: Path, data: bytes | str) -> list[str]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with path.open("rb") as file:
        made.look_into(file, "f")
    return made.lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f"


def test_plain_text_is_found_as_it_is_written(path: Path) -> None:
    assert found(search("a.b("), path, "a.b(\naxb(\n x a.b( y\n") == ["f:1: a.b(", "f:3:  x a.b( y"]


def test_case_counts_unless_it_is_ignored(path: Path) -> None:
    assert found(search("É"), path, "é\nÉ") == ["f:2: É"]
    assert found(search("STRASSE", ignore_case=True), path, "straße") == ["f:1: straße"]
    assert found(search("É", ignore_case=True), path, "é\nÉ") == ["f:1: é", "f:2: É"]
    assert found(search("[A-B]$", ignore_case=True, regex=True), path, "xa\nxc") == ["f:1: xa"]


def test_a_regular_expression_sees_one_line_at_a_time(path: Path) -> None:
    assert found(search(r"^a\s*$", regex=True), path, "a\n\nb\na ") == ["f:1: a", "f:4: a "]
    assert found(search(r"\Ab\Z", regex=True), path, "a\nb\nc") == ["f:2: b"]
    assert found(search("^$", regex=True), path, "a\n\nb\n") == ["f:2: "]
    assert found(search("^$", regex=True), path, "") == []


@given(
    st.text("ab+*?.|()^$[]\\ \n\\bsAZw(?:=!)", min_size=1, max_size=8),
    st.text("ab \n", max_size=12),
)
@settings(deadline=None)
def test_the_fast_look_at_a_whole_text_misses_no_line(pattern: str, text: str) -> None:
    try:
        made = matcher(pattern, is_regex=True, ignore_case=False)
    except ValueError:
        return
    if any(made.in_line(line) >= 0 for line in text.split("\n")):
        assert made.in_text(text)


def test_lines_are_counted_as_an_editor_counts(path: Path) -> None:
    assert found(search("x"), path, "a\r\nx\rb\nc\x0bx\u2028d") == ["f:2: x", "f:4: c\x0bx\u2028d"]


def test_other_encodings_are_searched_and_binary_files_are_counted(path: Path) -> None:
    made = search("é")
    assert found(made, path, "é".encode("utf-16")) == ["f:1: é"]
    assert found(made, path, b"\xff\xc3\xa9") == ["f:1: é", "f:1: \ufffdé"]
    found(made, path, b"\x00\xc3\xa9")
    assert (made.files, made.binary) == (2, 1)
    assert made.report()[-1] == "[1 binary files not searched]"


def test_a_long_line_shows_the_part_that_matches(path: Path) -> None:
    (line,) = found(search("needle"), path, "x" * 5000 + "needle" + "y" * 5000)
    assert "needle" in line
    assert len(line) < 400
    assert line.startswith("f:1: [4,925 characters left out] xxx")


def test_matches_beyond_the_limit_are_counted(path: Path) -> None:
    made = search("a", limit=2)
    found(made, path, "a\na\na\nb\na")
    assert made.report() == [
        "f:1: a",
        "f:2: a",
        "[2 of 4 matches left out: narrow path, glob or pattern, or raise limit]",
    ]


def test_the_text_of_one_answer_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = search("a", limit=1000, _room=60)
    found(made, path, ("a" * 50 + "\n") * 10)
    assert len(made.lines) == 2
    assert "[8 of 10 matches left out" in made.report()[-1]


def test_nothing_found_is_said_with_the_number_of_files(path: Path) -> None:
    made = search("z")
    found(made, path, "a")
    assert made.report() == ["[no match in 1 files]"]


def test_a_file_that_is_too_large_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BYTES", 10)
    made = search("a")
    found(made, path, "a" * 11)
    assert made.report() == ["[no match in 0 files]", "[larger than 10 bytes, not searched: f]"]


@pytest.mark.parametrize(
    ("pattern", "regex", "reason"),
    [
        ("", False, "1 to 1,000 characters"),
        ("a" * (MOST_PATTERN + 1), False, "1 to 1,000 characters"),
        ("a\nb", False, "more than one line"),
        ("(", True, "Not a regular expression: missing"),
        ("a{2,1}", True, "Not a regular expression"),
        ("[z-a]", True, "Not a regular expression"),
        ("a{100000000}", True, "multiply to more than 100,000"),
        ("(?:a{99}b{99}){999}", True, "multiply to more than 100,000"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_is_refused(
    pattern: str, regex: bool, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        search(pattern, regex=regex)


@pytest.mark.parametrize(
    "pattern", [r"^(a|a|aa)+$", r"(\w+\s?)+,,$", r"^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_a_pattern_that_would_not_end_is_stopped_or_answered(path: Path, pattern: str) -> None:
    begin = time.monotonic()
    try:
        assert found(search(pattern, regex=True), path, "a" * 5000 + "!\n") == []
    except ValueError as error:
        assert "takes too long on f:1: make it simpler" in str(error)
    assert time.monotonic() - begin < 10


def test_a_search_whose_time_is_over_says_where(path: Path) -> None:
    with pytest.raises(ValueError, match="takes too long on f:1"):
        found(search("a", seconds=-1.0), path, "a")
