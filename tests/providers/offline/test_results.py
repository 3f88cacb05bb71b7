"""The texts of the file tools are read as they are written, odd names included."""

from collections.abc import Mapping

from loopwright.providers.offline.results import Hit, Hits, Listing, Page, read_step
from loopwright.providers.offline.transcript import Call, Step


def step(tool: str, text: str, arguments: Mapping[str, object] | None = None) -> Step:
    return Step(Call(tool, dict(arguments or {})), text, False)


def page(text: str, start: int = 1) -> Page | None:
    found = read_step(step("read_file", text, {"path": "a.txt", "start_line": start}))
    assert found is None or isinstance(found, Page)
    return found


def hits(text: str, files: list[str]) -> list[Hit]:
    found = read_step(step("search_text", text, {"pattern": "x"}))
    assert isinstance(found, Hits)
    return list(found.resolved(files))


def test_a_whole_file_has_no_marker() -> None:
    assert page("a\n\nb") == Page("a.txt", ((1, "a"), (2, ""), (3, "b")), True, 3)


def test_a_page_says_which_lines_it_is() -> None:
    text = "a\nb\n[lines 5-6 of 1,200; 1,194 lines left: read on with start_line=7]"
    assert page(text, 5) == Page("a.txt", ((5, "a"), (6, "b")), False, 1200)
    text = "a\n[lines 6-6 of 6: the end of the file]"
    assert page(text, 6) == Page("a.txt", ((6, "a"),), True, 6)


def test_a_line_that_looks_like_a_marker_is_a_line() -> None:
    found = page("a\n[lines 5-9 of 12: the end of the file]")
    assert found is not None and len(found.lines) == 2


def test_an_unknown_form_is_not_guessed() -> None:
    assert page("a\nb", 5) is None
    assert read_step(step("other_tool", "a.py:1: x")) is None


def test_an_empty_file_has_no_lines() -> None:
    found = page("[the file is empty]")
    assert found is not None and (found.lines, found.last, found.complete) == ((), 0, True)


def test_names_that_look_like_findings_are_told_apart_by_the_listing() -> None:
    line = "a:3: b.txt:7: see c:9: d"
    assert hits(line, ["a:3: b.txt"]) == [Hit("a:3: b.txt", 7, "see c:9: d")]
    assert hits(line, ["a"]) == [Hit("a", 3, "b.txt:7: see c:9: d")]


def test_names_in_brackets_are_findings_and_notes_are_none() -> None:
    text = (
        "[id].tsx:2: // x\n[2,900 of 2,901 matches left out: narrow path]\n"
        "[1 binary files not searched]\n[stopped early, 10 seconds were over: narrow path]"
    )
    found = read_step(step("search_text", text, {"pattern": "x"}))
    assert isinstance(found, Hits)
    assert [hit.path for hit in found.resolved([])] == ["[id].tsx"]
    assert (found.left_out, found.notes) == (2900, ("stopped early, 10 seconds were over",))


def test_a_listing_counts_what_it_does_not_show() -> None:
    text = (
        "a.txt\nsub/ (9,000 files)\nlink (link)\n[8 of 11 entries left out: narrow path]\n"
        "[9,010 files, more than the limit of 3: folders are shown with the number of files]"
    )
    found = read_step(step("list_files", text))
    assert isinstance(found, Listing)
    assert found.files == ("a.txt", "link")
    assert found.folders == (("sub/", 9000),)
    assert (found.whole, found.total) == (True, 9010)


def test_an_empty_folder_and_a_stopped_listing_are_told_apart() -> None:
    empty = read_step(step("list_files", "[no files]"))
    stopped = read_step(step("list_files", "a\n[stopped early, 10 seconds were over: narrow]"))
    assert isinstance(empty, Listing) and empty.total == 0
    assert isinstance(stopped, Listing) and stopped.total is None
