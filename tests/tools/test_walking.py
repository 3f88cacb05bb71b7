"""How the files below a folder are gone through."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopwright.signals import AbortSignal
from loopwright.tools import walking
from loopwright.tools.walking import MOST_DEPTH, Walk


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def made(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    return root


def walked(root: Path, walk: Walk) -> list[str]:
    with opened(root) as folder:
        return [found.path for found in walk.files(folder)]


def test_files_come_in_one_order_by_name(tmp_path: Path) -> None:
    made(tmp_path, "b/2", "b/1", "c", "a", "b.txt", "B")
    assert walked(tmp_path, Walk(AbortSignal(), 10)) == ["B", "a", "b/1", "b/2", "b.txt", "c"]


def test_hidden_and_vendor_folders_are_skipped_and_kept_in_mind(tmp_path: Path) -> None:
    made(tmp_path, ".git/x", "node_modules/y", "src/__pycache__/z", ".env", "src/a")
    walk = Walk(AbortSignal(), 10)
    assert walked(tmp_path, walk) == [".env", "src/a"]
    assert walk.skipped == [".git", "node_modules", "src/__pycache__"]


def test_links_are_found_but_not_followed(tmp_path: Path) -> None:
    made(tmp_path, "sub/a")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "out").symlink_to("/etc/hostname")
    with opened(tmp_path) as folder:
        found = [(one.path, one.is_link) for one in Walk(AbortSignal(), 10).files(folder)]
    assert found == [("again", True), ("out", True), ("sub/a", False)]


def test_a_folder_that_cannot_be_entered_is_kept_in_mind(tmp_path: Path) -> None:
    made(tmp_path, "a", "b/secret", "c")
    walk = Walk(AbortSignal(), 10)
    with opened(tmp_path) as folder:
        files = walk.files(folder)
        seen = [next(files).path]
        # Behind the walk's back: what was a folder when it was listed becomes a link to it.
        (tmp_path / "b").rename(tmp_path / "moved")
        (tmp_path / "b").symlink_to(tmp_path / "moved")
        seen += [found.path for found in files]
    assert seen == ["a", "c"]
    assert walk.unreadable == ["b"]


def test_folders_far_inside_one_another_are_left_out(tmp_path: Path) -> None:
    made(tmp_path, "d/" * (MOST_DEPTH + 1) + "a", "d/" * MOST_DEPTH + "b")
    walk = Walk(AbortSignal(), 10)
    assert [Path(path).name for path in walked(tmp_path, walk)] == ["b"]
    assert walk.unreadable == ["d/" * MOST_DEPTH + "d"]


def test_a_walk_ends_when_its_time_is_over(tmp_path: Path) -> None:
    made(tmp_path, "a", "b", "c/d")
    walk = Walk(AbortSignal(), -1)
    assert walked(tmp_path, walk) == ["a"]
    assert walk.stopped == "-1 seconds were over"


def test_a_walk_ends_when_the_run_is_cancelled(tmp_path: Path) -> None:
    made(tmp_path, "a/b", "c")
    signal = AbortSignal()
    signal.abort()
    walk = Walk(signal, 10)
    assert walked(tmp_path, walk) == ["a/b"]
    assert walk.stopped == "the run was cancelled"


def test_a_walk_ends_when_it_has_seen_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MOST_FILES", 2)
    made(tmp_path, "a", "b", "c", "d")
    walk = Walk(AbortSignal(), 10)
    assert walked(tmp_path, walk) == ["a", "b", "c"]
    assert walk.stopped == "more than 2 files"


def test_no_descriptor_stays_open_when_a_walk_is_left(tmp_path: Path) -> None:
    made(tmp_path, "a/b/c/1", "a/b/c/2")
    before = len(os.listdir("/dev/fd"))
    with opened(tmp_path) as folder:
        files = Walk(AbortSignal(), 10).files(folder)
        next(files)
        files.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/dev/fd")) == before
