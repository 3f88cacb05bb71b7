"""Asked what is in a folder and what is left to do in it, the model is right about real files."""

from pathlib import Path

import pytest

import loopwright
from loopwright.tools.contract import ToolRegistry
from loopwright.tools.files import list_files, read_file
from loopwright.tools.registry import registry
from tests.providers.offline.driving import ask, cited, grep
from tests.providers.offline.folders import STYLES, many_files, other_styles, write

SAMPLE = Path(loopwright.__file__).parent / "sample"

pytestmark = pytest.mark.anyio


def next_steps(folder: Path) -> set[tuple[str, int]]:
    """The open items below `## Next steps` in the sample's README."""
    lines = (folder / "README.md").read_text(encoding="utf-8").split("\n")
    begin = lines.index("## Next steps")
    return {
        ("README.md", number)
        for number, line in enumerate(lines, 1)
        if number > begin and line.startswith("- ") and "~~" not in line
    }


async def test_the_sample_is_answered_exactly_over_at_least_four_turns() -> None:
    done = await ask(SAMPLE)
    marks = grep(SAMPLE, r"TODO|FIXME|XXX|HACK|@todo|// todo:|- \[ \]")
    assert len(marks) >= 6
    assert set(cited(done.answer, SAMPLE)) == set(marks) | next_steps(SAMPLE)
    assert done.turns >= 5
    assert set(done.calls()) == {"list_files", "read_file", "search_text"}
    assert "2 Markdown" in done.answer
    assert "fixed rules, not a language model" in done.answer


async def test_other_names_languages_and_styles_are_found_at_their_line(tmp_path: Path) -> None:
    folder = other_styles(tmp_path)
    done = await ask(folder)
    assert "... and" not in done.answer
    assert set(cited(done.answer, folder)) == set(grep(folder, STYLES))


async def test_every_cited_text_stands_in_its_line(tmp_path: Path) -> None:
    folder = other_styles(tmp_path)
    places = cited((await ask(folder)).answer, folder)
    for (name, number), text in places.items():
        line = (folder / name).read_bytes().decode("utf-8", "replace").split("\n")[number - 1]
        assert text.split("  (in ")[0] in line


async def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    done = await ask(tmp_path)
    assert "This folder is empty" in done.answer
    assert "Nothing is left to do" in done.answer
    assert not cited(done.answer, tmp_path)


async def test_ten_thousand_files_take_few_turns_and_are_counted_honestly(tmp_path: Path) -> None:
    folder = many_files(tmp_path)
    done = await ask(folder)
    expected = grep(folder, "FIXME")
    places = cited(done.answer, folder)
    assert len(expected) == 200
    assert "10,000 files" in done.answer
    assert "200 things in 200 files" in done.answer
    assert set(places) < set(expected)
    assert f"and {200 - len(places)} more" in done.answer
    assert done.turns <= 10
    assert len(done.answer) < 8_000


async def test_more_marks_than_a_search_shows_are_counted_as_not_shown(tmp_path: Path) -> None:
    write(tmp_path, {"long.txt": "TODO: again\n" * 3_000})
    answer = (await ask(tmp_path)).answer
    assert "at least 1,000 things" in answer
    assert "and 940 more" in answer
    assert "2,000 more matching lines" in answer


async def test_nothing_marked_is_said_with_weaker_signs_as_hints(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "README.md": "# Tool\n\nIt posts to Mastodon, a todo app can wait.\n",
            "a.py": "def f():\n    raise NotImplementedError\n",
        },
    )
    done = await ask(tmp_path)
    assert "Nothing is marked as left to do" in done.answer
    assert set(cited(done.answer, tmp_path)) == {("a.py", 2)}
    assert done.turns >= 5


async def test_a_list_below_a_heading_is_read_to_its_end(tmp_path: Path) -> None:
    items = "".join(f"- item {number}\n" for number in range(100))
    text = f"# Plan\n\n## To do\n\n{items}\n## Done\n\n- this\n"
    write(tmp_path, {"x/plan.md": text, "a.md": "# A\n", "b.md": "# B\n", "c.md": "# C\n"})
    answer = (await ask(tmp_path)).answer
    assert "100 things in 1 file (100 list items)" in answer
    assert "not read to the end" not in answer


async def test_a_file_that_is_a_list_of_tasks_counts_line_by_line(tmp_path: Path) -> None:
    write(tmp_path, {"todo.txt": "(A) call\nx 2024-01-01 paid\n\nbuy milk\n"})
    answer = (await ask(tmp_path)).answer
    assert set(cited(answer, tmp_path)) == {("todo.txt", 1), ("todo.txt", 4)}


async def test_a_list_of_tasks_in_a_comment_is_cited_item_by_item(tmp_path: Path) -> None:
    code = (
        '"""Thing.\n\nTodo:\n    * one\n    * two\n"""\n\n# TODO:\n#  - three\n\nx = [\n    1,\n]\n'
    )
    write(tmp_path, {"a.py": code})
    answer = (await ask(tmp_path)).answer
    assert set(cited(answer, tmp_path)) == {("a.py", 4), ("a.py", 5), ("a.py", 9)}


async def test_hidden_folders_are_said_to_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "TODO: a\n", ".hidden/b.txt": "TODO: b\n"})
    answer = (await ask(tmp_path)).answer
    assert set(cited(answer, tmp_path)) == {("a.txt", 1)}
    assert ".hidden" in answer.split("Not taken into account:")[1]


async def test_a_mark_far_out_on_a_long_line_is_found_and_shown(tmp_path: Path) -> None:
    write(tmp_path, {"min.js": "var a=1;" * 500 + "// TODO: unpack\n"})
    places = cited((await ask(tmp_path)).answer, tmp_path)
    assert "TODO: unpack" in places["min.js", 1]


async def test_failing_tools_are_told_and_end_the_survey(tmp_path: Path) -> None:
    done = await ask(tmp_path / "gone")
    assert "could not list" in done.answer
    assert "list_files failed" in done.answer
    assert done.turns <= 4


async def test_without_a_search_tool_only_what_was_read_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"README.md": "# A\n\n- [ ] open\n"})
    done = await ask(tmp_path, tools=registry([list_files, read_file]))
    assert set(cited(done.answer, tmp_path)) == {("README.md", 3)}
    assert "could not be searched" in done.answer


async def test_without_tools_it_says_what_it_needs(tmp_path: Path) -> None:
    done = await ask(tmp_path, tools=ToolRegistry())
    assert "list_files" in done.answer
    assert done.turns == 1


async def test_the_second_answer_on_a_thread_tells_the_difference(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "TODO: one\n"})
    first = await ask(tmp_path)
    same = await ask(tmp_path, before=first.messages)
    assert "Nothing has changed" in same.answer
    write(tmp_path, {"a.txt": "# moved down\nTODO: one\nTODO: two\n"})
    after = await ask(tmp_path, before=same.messages)
    assert "1 came, 0 went" in after.answer


async def test_the_same_folder_gives_the_same_transcript(tmp_path: Path) -> None:
    folder = other_styles(tmp_path)
    one, two = await ask(folder), await ask(folder)
    assert [m.model_dump(exclude={"id"}) for m in one.messages] == [
        m.model_dump(exclude={"id"}) for m in two.messages
    ]
