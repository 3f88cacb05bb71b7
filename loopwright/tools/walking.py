"""Goes through the files below a folder: in a fixed order, within bounds, without following links.

What is left out on the way (hidden and vendor folders, what cannot be read) is kept to be told; the
agent's own database is not.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from loopwright.signals import AbortSignal
from loopwright.state.database import open_files
from loopwright.tools.workspace import open_subfolder

MOST_FILES = 200_000
"""Files that one walk looks at."""

MOST_DEPTH = 64
"""Folders inside one another that one walk goes into."""

VENDOR_FOLDERS = frozenset(
    {"__pycache__", "bower_components", "node_modules", "site-packages", "vendor", "venv"}
)
"""Folders of other people's or machine-made files; like hidden ones entered only when asked for."""


@dataclass(frozen=True)
class Found:
    """One entry: its path relative to where the walk began, and where to open it."""

    path: str
    name: str
    folder: int
    """Descriptor of the folder it is in; open only until the walk goes on."""
    is_link: bool


@dataclass
class Walk:
    """One walk over the files below an open folder.

    Order: by name, folders at their place among the files. Ends early when `seconds` are over, the
    run is cancelled, or MOST_FILES were seen; `stopped` then says why.
    """

    signal: AbortSignal
    seconds: float
    skipped: list[str] = field(default_factory=list)
    """Hidden and vendor folders that were not entered."""
    unreadable: list[str] = field(default_factory=list)
    """Folders that could not be entered."""
    stopped: str | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds
        self._own = open_files()

    def files(self, folder: int, prefix: str = "", depth: int = 0) -> Iterator[Found]:
        """The files and links below an open folder, which stays open."""
        device = os.fstat(folder).st_dev
        for entry in _entries(folder):
            if (device, entry.inode()) in self._own:
                continue
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(folder, entry.name, path, depth)
            else:
                self.seen += 1
                yield Found(path, entry.name, folder, entry.is_symlink())
            if self.is_over():
                return

    def is_over(self) -> bool:
        """Whether the walk has to end here."""
        if self.stopped is None and self.signal.aborted:
            self.stopped = "the run was cancelled"
        if self.stopped is None and time.monotonic() > self._deadline:
            self.stopped = f"{self.seconds:g} seconds were over"
        if self.stopped is None and self.seen > MOST_FILES:
            self.stopped = f"more than {MOST_FILES:,} files"
        return self.stopped is not None

    def _below(self, folder: int, name: str, path: str, depth: int) -> Iterator[Found]:
        if name.startswith(".") or name in VENDOR_FOLDERS:
            self.skipped.append(path)
            return
        if depth >= MOST_DEPTH:
            self.unreadable.append(path)
            return
        try:
            below = open_subfolder(folder, name)
        except OSError:
            self.unreadable.append(path)
            return
        try:
            yield from self.files(below, f"{path}/", depth + 1)
        finally:
            os.close(below)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
