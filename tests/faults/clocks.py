"""Virtual time for stalls: it passes on the client's side as soon as the server is silent.

Waits between two requests pass at once, as in `tests.conformance.asking`.
"""

import asyncio

from loopwright.testing import VirtualClock
from tests.conformance.asking import SteppedClock

STALL = 1_000_000.0
"""Seconds of silence that a run bears here: more than any wait between two requests."""

_LOOK_AGAIN = 0.02


class StallingClock(SteppedClock):
    """The run's clock. Who sleeps this long watches a stream, and is woken by a stall only."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__(start)
        self._watch = VirtualClock()
        self.retries = 0
        """How many waits between two requests have passed."""

    async def sleep(self, seconds: float) -> None:
        """Pass the time at once, or wait for a stall."""
        if seconds < STALL / 2:
            self.retries += 1
            await super().sleep(seconds)
        else:
            await self._watch.sleep(seconds)

    def stall(self) -> None:
        """Let the time of a stall pass."""
        self.advance(STALL)
        self._watch.advance(STALL)


class SilentClock:
    """The server's clock: a pause in an answer is a stall for the client, until it leaves."""

    def __init__(self, client: StallingClock) -> None:
        self._client = client

    def now(self) -> float:
        """The client's time."""
        return self._client.now()

    async def sleep(self, seconds: float) -> None:
        """Say nothing until the connection is closed. A piece may still be on its way when the
        time passes, so it passes again and again, but only for the attempt that is stalled."""
        attempt = self._client.retries
        while self._client.retries == attempt:
            self._client.stall()
            await asyncio.sleep(_LOOK_AGAIN)
        await asyncio.Event().wait()
