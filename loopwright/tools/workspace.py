"""Confines paths to one folder: nothing outside of it is opened, whatever links or races say.

What is done with a file or folder that was opened is the file tools' business.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from loopwright.state.database import is_open_here

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is not a folder",
    errno.EACCES: "may not be read (permission denied)",
    errno.EPERM: "may not be read (permission denied)",
    errno.ENAMETOOLONG: "has a name that is too long",
    errno.ELOOP: "is a link that changed or leads to itself",
}


class WorkspaceError(ValueError):
    """A path cannot be used; the message is for the model and names the path as it was given."""


class InUseError(WorkspaceError):
    """A file of a database that this process has open: to open it beside SQLite would do harm."""


def locate(workspace: Path | None, path: str) -> tuple[str, ...]:
    """The names that lead from the workspace to `path`, with all links resolved; () is itself.

    A relative path starts at the workspace. Nothing is expanded or decoded: `~`, `%2e` and
    `file://` are plain names. Raises WorkspaceError for a path that ends outside, also through
    `..` or a link, and for one that cannot be a path. What it names need not exist.
    """
    if workspace is None:
        raise WorkspaceError("There is no workspace: file tools have no folder to work in.")
    if "\0" in path:
        raise WorkspaceError(f"{_shown(path)} is not a path: it holds a NUL character.")
    root = os.path.realpath(workspace)
    try:
        real = os.path.realpath(os.path.join(root, path))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{_shown(path)} is not a path ({error}).") from error
    if os.path.commonpath([root, real]) != root:
        raise WorkspaceError(
            f"{_shown(path)} is outside the workspace: use a path relative to the workspace."
        )
    return Path(real).relative_to(root).parts


def is_file(workspace: Path | None, path: str) -> bool:
    """Whether a path of the workspace names something that is no folder. Raises as `locate`."""
    real = os.path.join(os.path.realpath(str(workspace)), *locate(workspace, path))
    return os.path.lexists(real) and not os.path.isdir(real)


def open_folder(workspace: Path | None, path: str) -> tuple[int, str]:
    """A descriptor of a folder, for the caller to close, and its name relative to the workspace.

    Raises WorkspaceError for what is outside, is no folder or cannot be read.
    """
    parts = locate(workspace, path)
    return _descend(Path(str(workspace)), parts, path), "/".join(parts)


def open_file(workspace: Path | None, path: str) -> tuple[BinaryIO, str]:
    """A regular file, opened for reading, and its name relative to the workspace.

    Raises WorkspaceError for what is outside, is no regular file or cannot be read. Never waits for
    a named pipe and never opens a device.
    """
    parts = locate(workspace, path)
    if not parts:
        raise WorkspaceError(f"{_shown(path)} is a folder, not a file.")
    folder = _descend(Path(str(workspace)), parts[:-1], path)
    try:
        return open_entry(folder, parts[-1], path), "/".join(parts)
    finally:
        os.close(folder)


def open_entry(folder: int, name: str, shown: str) -> BinaryIO:
    """The regular file `name` of an open folder; errors call it `shown`. Links are not followed."""
    try:
        # Before and after: opening a device may do something, and the name may change between.
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        _require_regular(status, shown)
        if is_open_here(status):
            raise InUseError(f"{_shown(shown)} belongs to the agent's own database.")
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise _failure(shown, error) from error
    try:
        _require_regular(os.fstat(descriptor), shown)
    except WorkspaceError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def open_subfolder(folder: int, name: str) -> int:
    """A descriptor of a folder in an open folder. Raises OSError; a link is not followed."""
    return os.open(name, _FOLDER, dir_fd=folder)


def _descend(workspace: Path, parts: tuple[str, ...], path: str) -> int:
    """Opens folder by folder and follows no link: they are resolved, so a new one is an attack."""
    try:
        current = os.open(os.path.realpath(workspace), _FOLDER)
        for part in parts:
            try:
                below = open_subfolder(current, part)
            finally:
                os.close(current)
            current = below
    except OSError as error:
        raise _failure(path, error) from error
    return current


def _require_regular(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "not a regular file")
        raise WorkspaceError(f"{_shown(shown)} is {kind}, not a file.")


def _failure(path: str, error: OSError) -> WorkspaceError:
    reason = _REASONS.get(error.errno or 0, f"cannot be read ({error.strerror})")
    return WorkspaceError(f"{_shown(path)} {reason}.")


def _shown(path: str) -> str:
    return repr(path) if len(path) <= 200 else f"{path[:200]!r}..."
