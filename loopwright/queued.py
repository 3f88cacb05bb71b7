"""What of an agent works on the messages that wait for a run: steering and follow-ups.

How a queue is stored is in `queues`; when a run takes from it is decided by its nodes.
"""

from langchain_core.messages import AnyMessage

from loopwright.queues import Queue, clear, enqueue, waiting
from loopwright.state.messages import Prompt
from loopwright.state.schema import no_cursor
from loopwright.stored import StoredThreads


class QueuedMessages(StoredThreads):
    """The methods of an agent over the queues of its threads; its own one if none is named."""

    def steer(self, prompt: Prompt, *, thread: str | None = None) -> None:
        """Queue a message for the next turn boundary; stored when this returns. On an idle thread
        it waits for the next run. Callable from any thread and process.
        """
        enqueue(self._storage.log, thread or self.thread, "steering", prompt)

    def follow_up(self, prompt: Prompt, *, thread: str | None = None) -> None:
        """Queue a message for when the run would otherwise end; stored when this returns."""
        enqueue(self._storage.log, thread or self.thread, "follow_up", prompt)

    def clear_queue(self, queue: Queue, *, thread: str | None = None) -> None:
        """Take back what waits in a queue; what was delivered stays delivered."""
        clear(self._storage.log, thread or self.thread, queue)

    def queued(self, queue: Queue, *, thread: str | None = None) -> list[AnyMessage]:
        """What waits in a queue, as of the last finished step."""
        name = thread or self.thread
        cursor = self._snapshot(name).values.get("cursor") or no_cursor()
        return waiting(self._storage.log, name, queue, cursor)
