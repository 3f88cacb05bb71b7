"""Named places in the loop at which a test may kill or hold the process; nothing happens unarmed.

What a test does there is its own business; which places there are is said here.
"""

from collections.abc import Callable
from typing import Literal

Place = Literal[
    "model",
    "before_effect",
    "after_effect",
    "put",
    "drain",
    "compaction",
    "repair",
    "journal",
    "lease",
]

_armed: dict[Place, Callable[[], None]] = {}


def reach(place: Place) -> None:
    """Say that the process is at a place: runs the action armed there, if there is one."""
    if _armed:
        action = _armed.get(place)
        if action is not None:
            action()


def arm(place: Place, action: Callable[[], None] | None) -> None:
    """Have `action` run whenever this process reaches the place; None disarms it."""
    if action is None:
        _armed.pop(place, None)
    else:
        _armed[place] = action
