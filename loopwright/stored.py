"""What of an agent works on stored threads: their past, and threads as a whole; no run is needed.

How the past is kept is said in `state.past`, what a file of a thread holds in `transfer`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.constants import START
from langgraph.types import StateSnapshot

from loopwright import transfer
from loopwright.adjustable import Adjustable
from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    ThreadExistsError,
    UnknownThreadError,
)
from loopwright.live import LiveState
from loopwright.queues import clear, head
from loopwright.spending import Usage, added, nothing
from loopwright.state import past
from loopwright.state.journal import carry_over, noted, take_over
from loopwright.state.keeping import KeepingSaver
from loopwright.state.messages import calls, new_id
from loopwright.state.moments import At, Moment
from loopwright.state.state_json import CHANNELS, ThreadState, from_json, to_json
from loopwright.state.storage import Storage
from loopwright.state.threads import ThreadInfo, summary
from loopwright.transfer import Imported


class StoredThreads(Adjustable):
    """The methods of an agent over the threads that its database holds.

    A thread that is not named is the agent's own. They block for as long as the database works.
    """

    thread: str
    _storage: Storage
    _live: LiveState

    def threads(self, *, limit: int | None = None) -> list[ThreadInfo]:
        """The stored threads, the one written last first."""
        return [summary(name, self._snapshot(name)) for name in self._storage.thread_ids()[:limit]]

    def messages(self, thread: str | None = None, *, at: At = None) -> list[AnyMessage]:
        """The thread's whole transcript, now or as it was `at` a moment of its history.

        Raises UnknownThreadError if nothing is stored, and UnknownMomentError.
        """
        return list(self._values(thread or self.thread, at).get("messages") or ())

    def history(self, thread: str | None = None, *, limit: int | None = None) -> list[Moment]:
        """The thread's past, the newest moment first; no message is loaded for it.

        Raises UnknownThreadError if nothing is stored.
        """
        name = thread or self.thread
        moments = list(islice(past.moments(self._storage.checkpointer, name), limit))
        if not moments and limit != 0:
            raise UnknownThreadError(name)
        return moments

    def usage(self, thread: str | None = None, at: At = None) -> Usage:
        """Tokens and cost of all requests of a thread, `at` a moment or the last (see `Usage`).

        Raises UnknownThreadError and UnknownMomentError.
        """
        values = self._values(thread or self.thread, at)
        return added(nothing(), values.get("usage") or {})

    def fork(self, thread: str | None = None, at: At = None, *, name: str | None = None) -> str:
        """Begin a new thread as another one was `at` a moment, the last by default; gives its id.

        `at` is a moment of `history`, its id or the beginning of that, or a number of messages.
        Both threads go on by themselves; messages queued so far stay with the old one. If a run
        was going on at that moment, a prompt repairs the fork and `resume` carries the run on; what
        tools have done by then is not done again. A run that goes on now is not disturbed. Stored
        when this returns. Raises UnknownThreadError, UnknownMomentError and ThreadExistsError.
        """
        source, target = thread or self.thread, name or new_id()
        saver, log = self._storage.checkpointer, self._storage.log
        with self._idle(target):
            moment = past.located(saver, source, at)
            self._require_new(target)
            answer = past.last_answer(saver, source, moment)
            if answer is not None and calls(answer):
                carry_over(log, source, target, str(answer.id))
            past.fork(saver, source, moment, target, head(log, target))
        return target

    def rewind(self, thread: str | None = None, *, at: At) -> None:
        """Let the thread go on from an earlier moment; see `fork` for what `at` may be.

        What came later stays in the history until it is pruned. Queued messages that were not
        delivered are dropped. Raises BusyThreadError during a run, UnknownThreadError and
        UnknownMomentError. Stored when this returns.
        """
        name = thread or self.thread
        saver = self._storage.checkpointer
        with self._idle(name):
            moment = past.located(saver, name, at)
            past.rewind(saver, name, moment, head(self._storage.log, name))
        if name == self.thread:
            self._show(self.messages())

    def export(self, thread: str | None, file: str | Path | TextIO, *, at: At = None) -> None:
        """Write a thread as JSON lines: its messages, system prompt, summary and what is queued.

        A path is written whole or not at all; an open text file is written and left open. With
        `at`, the thread as it was then, and nothing that is queued. None is the agent's own thread.
        """
        name = thread or self.thread
        values, log = self._values(name, at), self._storage.log
        transfer.write(transfer.contents(name, values, log, queues=at is None), file)

    def import_(self, path: str | Path, *, name: str | None = None) -> Imported:
        """Store a file that `export` has written as a new thread that goes on like any other.

        Its id is `name`, else the one in the file, else (if that is taken) a new one. The
        transcript is made valid unless `repair_policy` is `off`. A last line that breaks off is
        left out and told. Raises ThreadFileError and ThreadExistsError; nothing is stored then.
        """
        found, repaired = transfer.mended(
            transfer.read(path), mend=self.settings.repair_policy != "off"
        )
        saver, log = self._storage.checkpointer, self._storage.log
        target = transfer.name_in(found, name, self._is_stored)
        with self._idle(target):
            self._require_new(target)
            values = transfer.values_of(found, log, target)
            transfer.enqueue_all(found, log, target)
            past.begin(saver, target, values)
        return Imported(target, len(found.messages), len(found.queued), found.torn, repaired)

    def snapshot(self, thread: str | None = None, *, at: At = None) -> dict[str, Any]:
        """The thread's state as plain JSON, now or `at` a moment, also in the middle of a run.

        What waits in the queues is not in it; `export` takes that along. Raises UnknownThreadError
        and UnknownMomentError.
        """
        name, saver = thread or self.thread, self._storage.checkpointer
        moment = past.located(saver, name, at)
        stored = past.loaded(saver, name, moment).checkpoint["channel_values"]
        stored = {"messages": [], **stored, **stored.get(START, {})}
        channels = {channel: stored[channel] for channel in CHANNELS if channel in stored}
        answer = past.last_answer(saver, name, moment)
        notes = noted(self._storage.log, name, str(answer.id)) if answer is not None else ()
        following = "load" if moment.next == START else moment.next
        return to_json(ThreadState(name, channels, following, tuple(notes)))

    def restore(self, snapshot: Mapping[str, Any], *, name: str | None = None) -> str:
        """Store what `snapshot` gave as a new thread; gives its id: `name`, else a new one.

        A run that was going on is carried on by `resume`: what tools have done is not done again.
        Raises InputError and ThreadExistsError; nothing is stored then.
        """
        state, target = from_json(snapshot), name or new_id()
        log = self._storage.log
        answers = [m for m in state.values["messages"] if isinstance(m, AIMessage)]
        with self._idle(target):
            self._require_new(target)
            if answers and state.journal:
                take_over(log, target, str(answers[-1].id), state.journal)
            values = {**state.values, "cursor": head(log, target)}
            past.begin(self._storage.checkpointer, target, values, state.next)
        return target

    def delete(self, thread: str, *, reclaim: bool = False) -> None:
        """Delete all that is stored of a thread: messages, past, queues and journal.

        What forks of it share stays theirs. `reclaim` gives the space back to the system, which
        rewrites the file. Raises BusyThreadError during a run, and UnknownThreadError.
        """
        with self._idle(thread):
            queued = any(head(self._storage.log, thread).values())
            if not queued and not self._is_stored(thread):
                raise UnknownThreadError(thread)
            self._storage.checkpointer.delete_thread(thread)
            self._storage.log.delete(thread)
        if thread == self.thread:
            self._show([])
        if reclaim:
            self.reclaim()

    def prune(self, thread: str | None = None, *, keep: int = 1) -> None:
        """Forget the thread's past but for its newest `keep` moments; its messages stay.

        Raises BusyThreadError during a run, UnknownThreadError, and ConfigurationError for a
        checkpointer that has its own ways.
        """
        name = thread or self.thread
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise ConfigurationError(f"keep is {keep!r}: use a whole number of at least 1")
        saver = self._keeping("prune")
        with self._idle(name):
            past.located(saver, name)
            saver.thin(name, keep)

    def reclaim(self) -> None:
        """Give the space of what was deleted back to the system; the whole file is rewritten.

        Raises DatabaseError if another program is using the file.
        """
        self._keeping("reclaim").reclaim()

    def reset(self) -> None:
        """Begin anew on the own thread: no messages, nothing queued, no error; settings stay.

        Stored when this returns. Raises BusyThreadError during a run.
        """
        if self._live.is_streaming:
            raise BusyThreadError(self.thread)
        if self._is_stored(self.thread):
            self.graph.rewrite(self.thread, [])
        clear(self._storage.log, self.thread, "steering")
        clear(self._storage.log, self.thread, "follow_up")
        self._show([])

    @contextmanager
    def _idle(self, thread: str) -> Iterator[None]:
        """Hold the thread, so that nobody runs it; what is stored meanwhile is one commit."""
        lease = self.graph.leases.claim(thread)
        try:
            with past.together(self._storage.checkpointer):
                self._storage.require_idle(thread)
                yield
        finally:
            lease.release()

    def _is_stored(self, thread: str) -> bool:
        return past.is_stored(self._storage.checkpointer, thread)

    def _require_new(self, thread: str) -> None:
        if self._is_stored(thread):
            raise ThreadExistsError(thread)

    def _keeping(self, what: str) -> KeepingSaver:
        saver = self._storage.checkpointer
        if not isinstance(saver, KeepingSaver):
            raise ConfigurationError(
                f"{what}: this needs Loopwright's own checkpointer, not {type(saver).__name__}",
                field="checkpointer",
            )
        return saver

    def _show(self, messages: list[AnyMessage]) -> None:
        """What the live state shows after the own thread was changed outside of a run."""
        self._live.begin(messages)
        self._live.error_message = None

    def _values(self, thread: str, at: At) -> dict[str, Any]:
        saver = self._storage.checkpointer
        found = past.loaded(saver, thread, past.located(saver, thread, at))
        return found.checkpoint["channel_values"]

    def _snapshot(self, thread: str) -> StateSnapshot:
        return self.graph.get_state({"configurable": {"thread_id": thread}})
