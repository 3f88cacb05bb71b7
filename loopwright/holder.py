"""Who runs a thread: what a caller is told that finds it busy.

How a thread is taken lives in `state.lease`.
"""

from dataclasses import dataclass

from loopwright.text import moment


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The process that runs a thread. Times are seconds since the epoch."""

    host: str
    process: int
    since: float

    expires: float | None = None
    """When others may take the thread unless the process renews its lease; None: never, because
    it is this very process."""

    def __str__(self) -> str:
        """`process 7 on box has run it since 2026-01-31 12:00:00 UTC`, and until when."""
        who = f"process {self.process} on {self.host} has run it since {moment(self.since)}"
        return who if self.expires is None else f"{who}, with a lease until {moment(self.expires)}"
