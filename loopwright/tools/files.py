"""The built-in tools that only read: list, read and search the files of the run's workspace.

Where they may look is decided by `workspace`. Tools that change files do not belong here.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from loopwright.tools.contract import ToolContext
from loopwright.tools.decoding import text_of
from loopwright.tools.functions import tool
from loopwright.tools.globs import Glob
from loopwright.tools.listing import listing, notes
from loopwright.tools.reading import page
from loopwright.tools.searching import Search, matcher
from loopwright.tools.walking import Walk
from loopwright.tools.workspace import (
    InUseError,
    WorkspaceError,
    is_file,
    open_entry,
    open_file,
    open_folder,
)

SECONDS = 10.0
"""Time that one listing or search takes at most."""


@tool(effects="none")
def list_files(
    context: ToolContext,
    path: Annotated[str, "Folder to list, relative to the workspace."] = ".",
    pattern: Annotated[
        str | None, "Only files that fit, such as *.py, src/**/*.ts or *.{yml,yaml}."
    ] = None,
    limit: Annotated[int, Field(ge=1, le=2000, description="Most entries to show.")] = 200,
) -> str:
    """List the files below a folder of the workspace, subfolders included, sorted by path.

    When there are more files than the limit and no pattern is given, folders are shown with the
    number of files below them. Hidden and vendor folders (.git, node_modules) are left out unless
    one is given as path. Links are marked and not followed.
    """
    glob = Glob(pattern) if pattern is not None else None
    walk = Walk(context.signal, SECONDS)
    with _folder(context.workspace, path) as (folder, prefix):
        paths = [
            f"{found.path} (link)" if found.is_link else found.path
            for found in walk.files(folder)
            if glob is None or glob.matches(found.path)
        ]
    shown = listing(paths, limit, prefix=prefix, filtered=glob is not None)
    return "\n".join([shown or "[no files]", *notes(walk, prefix)])


@tool(effects="none")
def read_file(
    context: ToolContext,
    path: Annotated[str, "File to read, relative to the workspace."],
    start_line: Annotated[int, Field(ge=1, description="First line to show, from 1.")] = 1,
    limit_lines: Annotated[int, Field(ge=1, le=5000, description="Most lines to show.")] = 1000,
) -> str:
    """Read a text file of the workspace, or part of it.

    Lines are given as they are, without numbers. When not all of the file is shown, the last line
    says in brackets which lines these are and how to read on. Bytes that are no text are shown as
    U+FFFD; a binary file is refused.
    """
    file, name = open_file(context.workspace, path)
    with file:
        text = text_of(file)
        if text is None:
            size = os.fstat(file.fileno()).st_size
            raise WorkspaceError(f"{name!r} is a binary file ({size:,} bytes), which is not shown.")
        with text:
            return page(text, start_line, limit_lines).text()


@tool(effects="none")
def search_text(
    context: ToolContext,
    pattern: Annotated[str, "Text to look for, within one line."],
    path: Annotated[str, "Folder or file to search, relative to the workspace."] = ".",
    glob: Annotated[
        str | None, "Only files that fit, such as *.py, src/**/*.ts or *.{yml,yaml}."
    ] = None,
    ignore_case: Annotated[bool, "Whether A and a are the same."] = False,
    regex: Annotated[bool, "Whether the pattern is a regular expression."] = False,
    limit: Annotated[int, Field(ge=1, le=1000, description="Most lines to show.")] = 100,
) -> str:
    """Search the text files of the workspace line by line; answers are `file:line: text`.

    The pattern is plain text unless regex is true. Hidden and vendor folders (.git, node_modules)
    are left out unless one is given as path; binary files and links are not searched.
    """
    wanted = matcher(pattern, is_regex=regex, ignore_case=ignore_case)
    search = Search(wanted, limit, SECONDS)
    if is_file(context.workspace, path):
        file, name = open_file(context.workspace, path)
        with file:
            search.look_into(file, name)
        return "\n".join(search.report())
    left_out = _search_folder(context, search, path, Glob(glob) if glob is not None else None)
    return "\n".join([*search.report(), *left_out])


FILE_TOOLS: tuple[Callable[..., Any], ...] = (list_files, read_file, search_text)
"""The built-in tools that only read, as `registry` takes them."""


def _search_folder(context: ToolContext, search: Search, path: str, glob: Glob | None) -> list[str]:
    """Search all files below a folder; returns the notes on what was left out."""
    walk = Walk(context.signal, SECONDS)
    refused = 0
    with _folder(context.workspace, path) as (folder, prefix):
        for found in walk.files(folder):
            if found.is_link or (glob is not None and not glob.matches(found.path)):
                continue
            try:
                file = open_entry(found.folder, found.name, found.path)
            except InUseError:
                continue  # binary anyway
            except WorkspaceError:
                refused += 1
                continue
            with file:
                search.look_into(file, prefix + found.path)
    unread = [f"[{refused:,} files that could not be opened were not searched]"] if refused else []
    return [*unread, *notes(walk, prefix)]


@contextmanager
def _folder(workspace: Path | None, path: str) -> Iterator[tuple[int, str]]:
    """An open folder, and what stands before the paths in it to make them the workspace's."""
    folder, name = open_folder(workspace, path)
    try:
        yield folder, f"{name}/" if name else ""
    finally:
        os.close(folder)
