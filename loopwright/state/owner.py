"""Which process this is, and whether another one that wrote down who it is still lives.

What a process owns is said in `lease_table`.
"""

import os
import socket
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process of one machine, told apart from a later one that got the same number."""

    machine: str
    """Within it a number means one process: a boot and a set of process numbers. Empty: unknown."""

    host: str
    """The name of the machine, for people."""

    number: int
    began: str
    """When the process began, as its system counts; empty where it does not tell."""

    def is_gone(self) -> bool:
        """Whether the process is certainly over. False for one of another machine."""
        if not self.machine or self.machine != this_process().machine:
            return False
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it is there, and someone else's
        began = _began(self.number)
        return began is None or ("" not in (began, self.began) and began != self.began)


def this_process() -> Process:
    """The process that asks; a forked child is another one than its parent."""
    return _process(os.getpid())


@cache
def _process(number: int) -> Process:
    return Process(_machine(), socket.gethostname(), number, _began(number) or "")


def _machine() -> str:
    """Numbers of processes count within a boot, and within a container's own set of them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        known = os.name == "posix" and sys.platform != "linux"
        return socket.gethostname() if known else ""


def _began(number: int) -> str | None:
    """When a process began; None if it is over and waits for its parent, empty if unknown."""
    try:
        told = Path(f"/proc/{number}/stat").read_bytes()
    except OSError:
        return ""
    state, *fields = told.rpartition(b")")[2].split()  # its name, in brackets, may hold anything
    return None if state in (b"Z", b"X") else fields[18].decode()
