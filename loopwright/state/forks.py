"""What a forked child does not inherit: objects that follow forks forget their parent in it.

What there is to forget is each object's own.
"""

import os
import threading
import weakref
from typing import Protocol


class Forgetful(Protocol):
    """Something that belongs to one process."""

    def forget_parent(self) -> None:
        """In a forked child, before anything else runs there: begin anew."""
        ...


_following: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()
_lock = threading.Lock()


def follow_forks(one: Forgetful) -> None:
    """Have `one` forget its parent in every forked child, as long as it lives."""
    with _lock:
        _following.add(one)


def _in_child() -> None:
    _lock.release()
    for one in list(_following):
        one.forget_parent()


if hasattr(os, "register_at_fork"):
    # Held over the fork, so that no other thread holds it in the child for ever.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child
    )
