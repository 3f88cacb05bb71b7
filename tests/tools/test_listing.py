"""How lists of files look."""

from loopwright.signals import AbortSignal
from loopwright.tools.listing import listing, names, notes, shown
from loopwright.tools.walking import Walk

FILES = ["a.txt", "b/1.txt", "b/2.txt", "b/c/3.txt", "d.txt"]


def test_few_files_are_all_listed_with_their_prefix() -> None:
    assert listing(FILES[:2], 2, prefix="x/", filtered=False) == "x/a.txt\nx/b/1.txt"
    assert listing([], 2, prefix="", filtered=False) == ""


def test_many_files_are_shown_as_one_level_with_counts() -> None:
    assert listing(FILES, 4, prefix="", filtered=False).split("\n") == [
        "a.txt",
        "b/ (3 files)",
        "d.txt",
        "[5 files, more than the limit of 4: folders are shown with the number of files below "
        "them; list one of them, or give a pattern]",
    ]


def test_a_level_that_is_too_long_says_how_much_is_left_out() -> None:
    text = listing(FILES, 2, prefix="", filtered=False)
    assert "[1 of 3 entries left out: narrow path or pattern, or raise limit]" in text


def test_filtered_files_are_cut_and_not_folded() -> None:
    assert listing(FILES, 2, prefix="", filtered=True).split("\n") == [
        "a.txt",
        "b/1.txt",
        "[3 of 5 entries left out: narrow path or pattern, or raise limit]",
    ]


def test_a_name_with_a_line_break_is_one_line() -> None:
    assert shown("a\n[no files]") == "a\\n[no files]"
    assert shown("bad\udcff\x1b[2J") == "bad\\udcff\\x1b[2J"
    assert shown("é 名 🔥.txt") == "é 名 🔥.txt"


def test_long_lists_of_names_are_cut() -> None:
    assert names(["a", "b"], "x/") == "x/a, x/b"
    assert names([str(n) for n in range(12)], "").endswith("8, 9 and 2 more")


def test_notes_say_what_was_left_out() -> None:
    walk = Walk(AbortSignal(), 1.0, skipped=[".git"], unreadable=["locked"])
    assert notes(walk, "x/") == [
        "[hidden and vendor folders not looked into: x/.git; give one as path to look into it]",
        "[folders that could not be opened: x/locked]",
    ]
    walk.stopped = "1 seconds were over"
    assert notes(walk, "")[0] == "[stopped early, 1 seconds were over: narrow path or pattern]"
