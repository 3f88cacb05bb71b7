"""The built-in file tools as a model sees them: descriptions, answers, refusals."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loopwright.tools.files import FILE_TOOLS, list_files, read_file, search_text
from loopwright.tools.registry import registry
from tests.tools.running import content, context, failure

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "README.md").write_text("# Project\n\nTea for two.\n")
    (root / "src" / "main.py").write_text("def main():\n    return 'tea'\n")
    (root / "src" / "data.bin").write_bytes(b"tea\0tea")
    (root / ".git" / "config").write_text("tea\n")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("tea\n")
    return root


def test_every_tool_and_parameter_is_described_and_only_reads() -> None:
    made = registry(FILE_TOOLS)
    assert made.names() == ["list_files", "read_file", "search_text"]
    for tool in made.tools:
        assert tool.effects == "none"
        assert len(tool.description) > 100
        assert all(field["description"] for field in tool.parameters["properties"].values())
        assert "context" not in tool.parameters["properties"]


async def test_a_listing_shows_files_marks_links_and_tells_what_it_skips(root: Path) -> None:
    assert (await content(list_files, {}, context(root))).split("\n") == [
        "README.md",
        "out (link)",
        "src/data.bin",
        "src/main.py",
        "[hidden and vendor folders not looked into: .git; give one as path to look into it]",
    ]


async def test_a_listing_can_be_narrowed_by_path_and_pattern(root: Path) -> None:
    within = context(root)
    assert await content(list_files, {"path": "src"}, within) == "src/data.bin\nsrc/main.py"
    assert await content(list_files, {"path": ".git"}, within) == ".git/config"
    assert (await content(list_files, {"pattern": "*.py"}, within)).startswith("src/main.py\n[")
    assert await content(list_files, {"path": "src", "pattern": "*.md"}, within) == "[no files]"


async def test_a_file_is_read_as_it_is(root: Path) -> None:
    within = context(root)
    assert await content(read_file, {"path": "README.md"}, within) == "# Project\n\nTea for two."
    part = await content(read_file, {"path": "README.md", "limit_lines": 1}, within)
    assert part == "# Project\n[lines 1-1 of 3; 2 lines left: read on with start_line=2]"
    (root / "windows.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo \xff\r\n")
    assert await content(read_file, {"path": "windows.txt"}, within) == "one\ntwo \ufffd"


async def test_a_search_answers_file_line_and_text(root: Path) -> None:
    within = context(root)
    assert (await content(search_text, {"pattern": "tea"}, within)).split("\n") == [
        "src/main.py:2:     return 'tea'",
        "[1 binary files not searched]",
        "[hidden and vendor folders not looked into: .git; give one as path to look into it]",
    ]
    given: dict[str, Any] = {"pattern": "TEA", "ignore_case": True, "glob": "*.md"}
    assert (await content(search_text, given, within)).startswith("README.md:3: Tea for two.\n[")
    given = {"pattern": "^T.a", "regex": True, "path": "README.md"}
    assert await content(search_text, given, within) == "README.md:3: Tea for two."
    assert await content(search_text, {"pattern": "tea", "path": ".git"}, within) == (
        ".git/config:1: tea"
    )


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        (list_files, {"path": "out"}, "outside the workspace"),
        (read_file, {"path": "out/secret.txt"}, "outside the workspace"),
        (search_text, {"pattern": "tea", "path": "../secret.txt"}, "outside the workspace"),
        (list_files, {"path": "README.md"}, "is not a folder"),
        (list_files, {"path": "missing"}, "does not exist"),
        (list_files, {"pattern": " "}, "pattern is blank"),
        (read_file, {"path": "src"}, "is a folder, not a file"),
        (read_file, {"path": "src/data.bin"}, "'src/data.bin' is a binary file (7 bytes)"),
        (read_file, {"path": "README.md", "start_line": 9}, "has only 3 lines"),
        (search_text, {"pattern": "("}, ""),
        (search_text, {"pattern": "(", "regex": True}, "Not a regular expression"),
        (search_text, {"pattern": "tea", "path": "missing"}, "does not exist"),
    ],
)
async def test_what_cannot_be_done_is_an_error_that_says_why(
    root: Path, tool: Any, given: dict[str, Any], told: str
) -> None:
    if told:
        assert told in await failure(tool, given, context(root))
    else:
        assert "main.py:1" in await content(tool, given, context(root))


async def test_without_a_workspace_every_tool_says_so() -> None:
    calls: list[tuple[Any, dict[str, Any]]] = [
        (list_files, {}),
        (read_file, {"path": "a"}),
        (search_text, {"pattern": "a"}),
    ]
    for tool, given in calls:
        assert "no workspace" in await failure(tool, given)


async def test_names_that_are_no_text_can_still_be_listed_and_searched(root: Path) -> None:
    (root / "line\nbreak").write_text("coffee")
    (root / os.fsdecode(b"bad\xff.txt")).write_text("coffee")
    listed = await content(list_files, {"pattern": "{bad,line}*"}, context(root))
    assert listed.split("\n")[:2] == ["bad\\udcff.txt", "line\\nbreak"]
    found = await content(search_text, {"pattern": "coffee"}, context(root))
    assert found.split("\n")[:2] == ["bad\\udcff.txt:1: coffee", "line\\nbreak:1: coffee"]


async def test_ten_thousand_files_are_listed_and_searched_in_seconds(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"d{folder:02}").mkdir()
        for file in range(100):
            (tmp_path / f"d{folder:02}" / f"f{file:02}.txt").write_text(f"line\n{folder * file}\n")
    begin = time.monotonic()
    listed = await content(list_files, {}, context(tmp_path))
    found = await content(search_text, {"pattern": "9801"}, context(tmp_path))
    regex = await content(search_text, {"pattern": "^98.1$", "regex": True}, context(tmp_path))
    assert listed.startswith("d00/ (100 files)\nd01/ (100 files)\n")
    assert "[10,000 files, more than the limit of 200" in listed
    assert found == regex == "d99/f99.txt:2: 9801"
    assert time.monotonic() - begin < 20


async def test_a_slow_regular_expression_does_not_stop_other_threads(root: Path) -> None:
    (root / "slow.txt").write_text("a" * 5000 + "!\n")
    ticks = threading.Event()
    turns: list[int] = []

    def tick() -> None:
        while not ticks.wait(0.01):
            turns.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    given = {"pattern": r"^(a|a|aa)+$", "regex": True, "path": "slow.txt"}
    try:
        assert "takes too long on slow.txt:1" in await failure(search_text, given, context(root))
    finally:
        ticks.set()
        thread.join()
    assert len(turns) > 5
