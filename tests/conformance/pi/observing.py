"""Watches an agent's queues: each poll is a line in the trace, whether it finds something or not.

How many messages a poll has delivered is told by the run's own event, see `recording`.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from loopwright.ongoing import Ongoing
from loopwright.presets.pi import PiAgent, Refused
from loopwright.queues import Queue
from loopwright.state.log import Entry, Log
from tests.conformance.pi.recording import QUEUES
from tests.conformance.pi.world import World


class ObservedLog:
    """A run's queues, with a line in the trace for each poll; nothing was delivered by it yet."""

    def __init__(self, world: World, log: Log) -> None:
        self._world, self._log = world, log

    def append(self, thread: str, kind: str, body: Any) -> int:
        return self._log.append(thread, kind, body)

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        return self._log.append_all(thread, kind, bodies, full=full)

    async def commit(
        self, thread: str, kind: str, bodies: Sequence[Any], **options: Any
    ) -> list[int]:
        return await self._log.commit(thread, kind, bodies, **options)

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        return self._log.read(thread, kinds, after)

    def delete(self, thread: str) -> None:
        self._log.delete(thread)

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        found = await self._log.poll(thread, kinds, after)
        if kinds[0] in QUEUES:  # else it is a look-up in the journal
            self._world.log.append(f"poll:{QUEUES[kinds[0]]}:0")
        return found


class ObservedAgent(PiAgent):
    """A PiAgent that logs into which queues a refused `continue_` has looked."""

    world: World
    _looked_at: list[Queue] | None = None

    def queued(self, queue: Queue, *, thread: str | None = None) -> list[AnyMessage]:
        """As PiAgent's."""
        if self._looked_at is not None:
            self._looked_at.append(queue)
        return super().queued(queue, thread=thread)

    def continue_(self, *, thread: str | None = None) -> Ongoing:
        """As PiAgent's."""
        looked_at: list[Queue] = []
        self._looked_at = looked_at
        try:
            return super().continue_(thread=thread)
        except Refused:
            self.world.log += [f"poll:{QUEUES[queue]}:0" for queue in looked_at]
            raise
        finally:
            self._looked_at = None
