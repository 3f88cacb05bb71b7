"""`loopwright demo` does the main job on real folders, and continues on the same thread."""

import sys
from pathlib import Path

import pytest

import loopwright as package
from tests.cli.running import loopwright, stored
from tests.providers.offline.driving import QUESTION, cited, grep
from tests.providers.offline.folders import STYLES, many_files, other_styles, write

SAMPLE = Path(package.__file__).parent / "sample"


def test_without_arguments_it_answers_about_the_sample_over_four_turns(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "demo")
    assert (done.code, done.err) == (0, "")
    marks = grep(SAMPLE, r"TODO|FIXME|XXX|HACK|@todo|// todo:|- \[ \]")
    steps = grep(SAMPLE, "^- (measure|let)")
    assert set(cited(done.out, SAMPLE)) == {*marks, *steps}
    assert int(done.said("status").split(", ")[1].split()[0]) >= 4
    assert done.out.count("-> ") >= 4
    assert "not a language model" in done.said("model")
    assert Path(done.said("database")).is_relative_to(tmp_path)
    assert Path(done.said("database")).exists()


def test_a_folder_of_other_names_and_styles(tmp_path: Path) -> None:
    folder = other_styles(tmp_path / "other")
    done = loopwright(tmp_path, "demo", folder, "--database", tmp_path / "t.db")
    assert (done.code, done.err) == (0, "")
    assert set(cited(done.out, folder)) == set(grep(folder, STYLES))


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = loopwright(tmp_path, "demo", "empty")
    assert done.code == 0
    assert "This folder is empty" in done.out
    assert not cited(done.out, tmp_path / "empty")


def test_ten_thousand_files(tmp_path: Path) -> None:
    folder = many_files(tmp_path / "many")
    done = loopwright(tmp_path, "demo", folder)
    marks, places = grep(folder, "FIXME"), cited(done.out, folder)
    assert done.code == 0
    assert "10,000 files" in done.out
    assert places and set(places) < set(marks)
    assert f"and {len(marks) - len(places)} more" in done.out


def test_the_same_thread_continues_and_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "work", {"a.txt": "TODO: one\n"})
    words = ("demo", folder, "--thread", "mine", "--database", tmp_path / "t.db")
    first = loopwright(tmp_path, *words)
    write(folder, {"b.txt": "TODO: two\n"})
    second = loopwright(tmp_path, *words)
    assert (first.said("thread"), second.said("thread")) == (
        "mine (new)",
        "mine (continues after 9 messages)",
    )
    assert "Since my last answer on this thread: 1 came, 0 went." in second.out
    assert stored(tmp_path / "t.db", "mine").count(QUESTION) == 2
    asked = loopwright(
        tmp_path, "run", "which of them are in b.txt?", *words[2:], "--workspace", folder
    )
    assert set(cited(asked.out, folder)) == {("b.txt", 1)}


def test_the_line_that_it_ends_with_continues_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "my work", {"a.txt": "TODO: one\n"})
    first = loopwright(tmp_path, "demo", folder)
    again = first.said("continue")
    assert "'" in again
    script = 'loopwright() { "$PY" -m loopwright "$@"; }; eval "$AGAIN"'
    second = loopwright(tmp_path, command=("bash", "-c", script), PY=sys.executable, AGAIN=again)
    assert second.code == 0
    begun, continued = first.said("thread"), second.said("thread")
    assert begun.endswith(" (new)")
    assert continued == begun.replace("(new)", "(continues after 9 messages)")


def test_names_and_texts_of_files_cannot_steer_the_terminal(tmp_path: Path) -> None:
    text = "TODO: \x1b[31mred\x1b[0m \x1b]0;title\x07 \u202ereversed [bold]as it is[/bold]\n"
    folder = write(tmp_path / "odd", {"\x1b[2Ja\u4e2d[red].txt": text})
    done = loopwright(tmp_path, "demo", folder)
    assert done.code == 0
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(done.out)
    assert "[bold]as it is[/bold]" in done.out
    assert "[red].txt:1:" in done.out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_lacks_characters_gets_escapes(tmp_path: Path, encoding: str) -> None:
    folder = write(tmp_path / "zh", {"说明.md": "- [ ] 写文档\n"})
    done = loopwright(tmp_path, "demo", folder, PYTHONIOENCODING=encoding)
    assert (done.code, done.err) == (0, "")
    assert r"- \u8bf4\u660e.md:1: - [ ] \u5199\u6587\u6863" in done.out
