"""Which lines are marks of open work, and which only look like ones."""

import re

import pytest

from loopwright.providers.offline.marks import (
    LISTS_PATTERN,
    WORDS_PATTERN,
    heading,
    item_of,
    mark_of,
)

MARKS = [
    ("a.txt", "# TODO item 7 of the list", "TODO"),
    ("a.py", "x = 1  # TODO tidy", "TODO"),
    ("a.py", "# quick HACK around it", "HACK"),
    ("a.py", '"""TODO: explain"""', "TODO"),
    ("a.py", 'raise ValueError("FIXME: say more")', "FIXME"),
    ("a.js", "  // todo(ann): colours", "TODO"),
    ("a.js", " * @todo more", "TODO"),
    ("a.js", 'test.todo("adds");', "TODO"),
    ("a.rs", "todo!()", "TODO"),
    ("a.kt", 'TODO("later")', "TODO"),
    ("a.sql", "--TODO index", "TODO"),
    ("a.c", "//FIXME", "FIXME"),
    ("a.html", "<!-- todo nav -->", "TODO"),
    ("a.toml", "; bug: wraps", "BUG"),
    ("a.md", "1. [ ] write", "open box"),
    ("a.md", "> * [ ] quoted", "open box"),
    ("a.md", "**TODO** write", "TODO"),
    ("a.md", "the parser is slow (todo: measure)", "TODO"),
    ("a.md", "the date is TBD.", "TBD"),
    ("a.md", "TODO：测试", "TODO"),  # noqa: RUF001 - the colon of Chinese text
    ("a.tex", r"\todo[inline]{cite}", "TODO"),
    ("a.org", "** TODO call", "TODO"),
    ("NOTES", "☐ water the plants", "open box"),
    ("a.txt", "À faire : traduire", "TODO"),
]

NO_MARKS = [
    ("a.py", "mastodon = 1  # a mastodon is no elephant"),
    ("a.py", 'STATES = ["TODO", "DONE"]'),
    ("a.py", "PATTERN = 'TODO|FIXME'"),
    ("a.py", "TODO = 3"),
    ("a.py", "todo: list[str] = []"),
    ("a.py", "while todo:"),
    ("a.py", "TODOS.append(self.TODO)"),
    ("a.ts", "function f(todo: Todo) {}"),
    ("a.ts", 'const s = { TODO: "todo" };'),
    ("a.c", "case TODO: break;"),
    ("a.c", "enum { TODO, DONE };"),
    ("a.yaml", "  - [ ]"),
    ("a.sh", "if [ ] ; then"),
    ("a.md", "A TODO list app is what everyone writes."),
    ("a.md", "# TODO app"),
    ("a.md", "This tool understands TODO, FIXME and XXX marks."),
    ("a.md", "It reads `TODO` and todo.txt, see TODO.md and TODO-123."),
    ("a.md", "todo el mundo lo sabe"),
    ("a.md", "- [x] TODO: done"),
    ("a.md", "~~TODO: struck~~"),
    ("a.md", "- [ ](https://example.org)"),
    ("a.md", "write to me@todo.com or see example.org/TODO"),
]

HEADINGS = [
    ("a.md", "## TODO"),
    ("a.md", "### Next steps:"),
    ("a.md", "**To do**"),
    ("a.txt", "To do"),
    ("a.txt", "Open questions:"),
    ("a.rst", ".. todo::"),
    ("a.adoc", "== Roadmap"),
    ("a.md", "## À faire"),
    ("a.py", "    Todo:"),
    ("a.py", "# TODO:"),
]


@pytest.mark.parametrize(("path", "text", "kind"), MARKS)
def test_a_mark_is_known_by_its_word(path: str, text: str, kind: str) -> None:
    mark = mark_of(path, 7, text)
    assert mark is not None
    assert (mark.path, mark.line, mark.kind, mark.text) == (path, 7, kind, text.strip())


@pytest.mark.parametrize(("path", "text"), NO_MARKS)
def test_what_only_looks_like_a_mark_is_none(path: str, text: str) -> None:
    assert mark_of(path, 7, text) is None


@pytest.mark.parametrize(("path", "text"), HEADINGS)
def test_a_heading_begins_a_list_of_open_work(path: str, text: str) -> None:
    assert heading(path, text)
    assert mark_of(path, 1, text) is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "## TODO app"),
        ("a.txt", "pending"),
        ("a.md", "The next steps: none"),
        ("a.py", "# Roadmap"),
        ("a.yaml", "todo:"),
    ],
)
def test_other_titles_and_keys_begin_none(path: str, text: str) -> None:
    assert not heading(path, text)


@pytest.mark.parametrize("text", ["- [x] done", "- ~~struck~~", "plain text", "", "* ✓ did"])
def test_what_is_done_or_no_bullet_is_no_item(text: str) -> None:
    assert item_of("a.md", 1, text) is None


def test_an_item_that_is_also_a_mark_counts_as_the_mark() -> None:
    plain, boxed = item_of("a.md", 1, "- buy milk"), item_of("a.md", 2, "- [ ] buy milk")
    assert plain is not None and boxed is not None
    assert (plain.kind, boxed.kind) == ("list item", "open box")


def test_of_a_long_line_what_is_near_the_mark_is_told() -> None:
    mark = mark_of("a.js", 1, "x" * 500 + "; // TODO: shorten")
    assert mark is not None
    assert mark.text.startswith("...")
    assert mark.text.endswith("// TODO: shorten")
    assert len(mark.text) < 100


@pytest.mark.parametrize("text", [text for _, text, _ in MARKS] + [text for _, text in HEADINGS])
def test_the_search_finds_whatever_may_be_a_mark(text: str) -> None:
    assert re.search(WORDS_PATTERN, text) or re.search(LISTS_PATTERN, text)
