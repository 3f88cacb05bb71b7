"""No path leads out of the workspace: by dots, links, races or odd names."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopwright.tools.workspace import (
    WorkspaceError,
    is_file,
    locate,
    open_entry,
    open_file,
    open_folder,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links of every kind, beside folders that it must not lead to."""
    root = tmp_path / "agent"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "agent-evil").mkdir()
    (tmp_path / "out").mkdir()
    (root / "in.txt").write_text("in")
    (root / "sub" / "deep.txt").write_text("deep")
    (tmp_path / "agent-evil" / "x.txt").write_text("secret")
    (tmp_path / "out" / "secret.txt").write_text("secret")
    (root / "file_link").symlink_to(tmp_path / "out" / "secret.txt")
    (root / "dir_link").symlink_to(tmp_path / "out")
    (root / "dangling").symlink_to(tmp_path / "out" / "new.txt")
    (root / "inner_link").symlink_to(root / "sub")
    (root / "relative_link").symlink_to("../out/secret.txt")
    (root / "loop").symlink_to("loop")
    (tmp_path / "root_link").symlink_to(root)
    return root


def text(root: Path, path: str) -> str:
    file, _ = open_file(root, path)
    with file:
        return file.read().decode()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("in.txt", "in.txt"),
        ("./sub/../in.txt", "in.txt"),
        ("sub//deep.txt", "sub/deep.txt"),
        ("inner_link/deep.txt", "sub/deep.txt"),
        ("../agent/in.txt", "in.txt"),
    ],
)
def test_a_path_inside_is_opened_under_its_real_name(root: Path, path: str, name: str) -> None:
    file, found = open_file(root, path)
    with file:
        assert (file.read().decode(), found) == ((root / name).read_text(), name)


def test_an_absolute_path_inside_is_opened_also_through_a_link_to_the_root(root: Path) -> None:
    link = root.parent / "root_link"
    assert text(root, str(root / "in.txt")) == "in"
    assert text(link, "in.txt") == "in"
    assert text(link, str(link / "in.txt")) == "in"
    assert text(link, str(root / "in.txt")) == "in"


@pytest.mark.parametrize(
    "path",
    [
        "../agent-evil/x.txt",
        "sub/../../out/secret.txt",
        "file_link",
        "relative_link",
        "dir_link/secret.txt",
        "dir_link",
        "dangling",
        "..",
        "/etc/hostname",
        "/",
    ],
)
def test_a_path_that_ends_outside_is_refused(root: Path, path: str) -> None:
    for use in (locate, open_file, open_folder, is_file):
        with pytest.raises(WorkspaceError, match="outside the workspace") as refused:
            use(root, path)
        assert repr(path) in str(refused.value)
        assert "secret" not in str(refused.value).replace(path, "")


def test_a_sibling_whose_name_begins_like_the_root_is_outside(root: Path) -> None:
    with pytest.raises(WorkspaceError, match="outside"):
        locate(root, str(root) + "-evil/x.txt")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("%2e%2e/agent-evil/x.txt", "does not exist"),
        ("~/.ssh/config", "does not exist"),
        ("file:///etc/hostname", "does not exist"),
        ("..\\out\\secret.txt", "does not exist"),
        ("missing.txt", "does not exist"),
        ("in.txt/x", "is not a folder"),
        ("in.txt\0.png", "NUL"),
        ("n" * 5000, "too long"),
        ("bad\ud83dname", "is not a path"),
        ("loop", "is a link, not a file"),
        ("loop/x", "leads to itself|is not a folder"),
        ("sub", "is a folder, not a file"),
        ("", "is a folder, not a file"),
        (".", "is a folder, not a file"),
    ],
)
def test_what_cannot_be_opened_is_said_clearly(root: Path, path: str, reason: str) -> None:
    with pytest.raises(WorkspaceError, match=reason) as refused:
        open_file(root, path)
    assert len(str(refused.value)) < 400


def test_pipes_sockets_and_devices_are_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        # A socket's path has to be short, so it is bound by a relative one.
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(root)
            server.bind("socket")
        finally:
            os.fchdir(here)
            os.close(here)
        for path, kind in (("pipe", "a named pipe"), ("socket", "a socket")):
            with pytest.raises(WorkspaceError, match=f"is {kind}, not a file"):
                open_file(root, path)
    with pytest.raises(WorkspaceError, match="is a device, not a file"):
        open_file(Path("/dev"), "null")


def test_without_a_workspace_nothing_is_opened() -> None:
    for use in (locate, open_file, open_folder, is_file):
        with pytest.raises(WorkspaceError, match="no workspace"):
            use(None, "in.txt")


def test_a_folder_that_becomes_a_link_after_it_was_looked_at_is_not_followed(root: Path) -> None:
    folder, name = open_folder(root, "sub")
    try:
        assert name == "sub"
        (root / "sub" / "deep.txt").unlink()
        (root / "sub" / "deep.txt").symlink_to(root.parent / "out" / "secret.txt")
        with pytest.raises(WorkspaceError, match="is a link"):
            open_entry(folder, "deep.txt", "sub/deep.txt")
    finally:
        os.close(folder)


def test_nothing_is_left_open(root: Path) -> None:
    os.mkfifo(root / "pipe")
    before = len(os.listdir("/dev/fd"))
    for path in ("missing/x", "sub/missing", "pipe", "in.txt/x", "../x"):
        with pytest.raises(WorkspaceError):
            open_file(root, path)
    assert text(root, "sub/deep.txt") == "deep"
    assert len(os.listdir("/dev/fd")) == before


NAMES = (
    ".. . sub in.txt deep.txt dir_link inner_link file_link relative_link dangling loop agent "
    "agent-evil out secret.txt x.txt"
)
pieces = st.sampled_from(["", *NAMES.split()])


@given(st.lists(pieces, max_size=8).map("/".join), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_path_ever_reads_what_is_outside(root: Path, path: str, absolute: bool) -> None:
    given_path = f"{root}/{path}" if absolute else path
    try:
        file, name = open_file(root, given_path)
    except WorkspaceError:
        return
    with file:
        inside = os.stat(root / name)
        assert (os.fstat(file.fileno()).st_ino, ".." in name) == (inside.st_ino, False)
        assert file.read() in (b"in", b"deep")
