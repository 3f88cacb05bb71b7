"""The journal of tool calls: what is known of each call, committed before and after its effect.

It is part of the log. What a batch notes when is said in `calls` and `tool_batch`; what a new run
makes of it in `load`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from loopwright.state.lease import Lease
from loopwright.state.log import Entry, Log
from loopwright.state.messages import Call

FateKind = Literal["unknown", "not_started", "asking", "started", "finished"]
Key = tuple[str, str]

JOURNAL = "journal/"
"""How the kinds of its entries in the log begin."""


@dataclass(frozen=True)
class Fate:
    """What became of a call as far as the journal knows.

    `unknown`: its batch was not journaled, or nothing was committed before it died. `not_started`:
    others of its batch were noted, it was not, or a person was asked about it. `asking`: its body
    has stopped to ask a person. `started`: it may have taken effect. `finished`: `result` is what
    was noted with it.
    """

    kind: FateKind
    result: Any = None


UNKNOWN, NOT_STARTED = Fate("unknown"), Fate("not_started")


def fingerprint(arguments: Any) -> str:
    """A short hash of arguments; equal for equal JSON values, whatever the order of their keys."""
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def idempotency_key(thread: str, message_id: str, call_id: str, arguments: Any) -> str:
    """The same for every attempt of one call with these arguments, different for all others."""
    text = json.dumps([thread, message_id, call_id, fingerprint(arguments)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Known:
    """What the journal says about the calls of one message."""

    fates: Mapping[Key, Fate] = field(default_factory=dict)

    def fate(self, call: Call) -> Fate:
        """The fate of a call, told by its id and its arguments as the ledger has them.

        The checked arguments are no part of that: they are known only when the hooks were asked,
        and a call that has finished asks none again.
        """
        return self.fates.get(_key(call), NOT_STARTED if self.fates else UNKNOWN)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Known":
        """What entries say, oldest first; a finished call stays finished."""
        fates: dict[Key, Fate] = {}
        for entry in entries:
            key = (entry.body["call"], entry.body["arguments"])
            if key not in fates or fates[key].kind != "finished":
                fates[key] = Fate(entry.body["fate"], entry.body.get("result"))
        return cls(fates)


async def look_up(log: Log, thread: str, message_ids: Sequence[str]) -> dict[str, Known]:
    """What is known of the calls of these messages, by message id."""
    by_kind: dict[str, list[Entry]] = {_kind(id): [] for id in message_ids}
    for entry in await log.poll(thread, list(by_kind)):
        by_kind[entry.kind].append(entry)
    return {id: Known.of(by_kind[_kind(id)]) for id in message_ids}


def recall(log: Log, thread: str, message_id: str) -> Known:
    """What is known of the calls of one message, for callers outside of an event loop."""
    return Known.of(log.read(thread, [_kind(message_id)]))


def carry_over(log: Log, source: str, target: str, message_id: str) -> None:
    """Give a copy of a thread what is known of one message's calls, so that none runs twice."""
    take_over(log, target, message_id, noted(log, source, message_id))


def noted(log: Log, thread: str, message_id: str) -> list[dict[str, Any]]:
    """All notes on one message's calls, as JSON."""
    return [entry.body for entry in log.read(thread, [_kind(message_id)])]


def take_over(log: Log, thread: str, message_id: str, notes: Sequence[dict[str, Any]]) -> None:
    """Store notes that another log has given."""
    log.append_all(thread, _kind(message_id), notes)


@dataclass
class Journal:
    """What one batch notes about its calls. `log` None: nothing is kept, and nothing is noted.

    Each method that is awaited is at most one commit, which is done when it returns, also for a
    caller that is cancelled meanwhile. Until `use` nothing is committed at all.
    """

    log: Log | None
    thread: str
    message_id: str
    full: bool = False
    lease: Lease | None = None
    """No call starts once it is lost: whoever has the thread now may start it too."""

    in_use: bool = False
    _delayed: list[dict[str, Any]] = field(default_factory=list)
    _finished: set[str] = field(default_factory=set)

    def has_result(self, call: Call) -> bool:
        """Whether this batch has committed the result of a call."""
        return call.id in self._finished

    def use(self) -> None:
        """From now on every result of the batch is noted."""
        self.in_use = self.log is not None

    def refused(self, call: Call, result: Any) -> None:
        """A call is answered without having run: noted with what is noted next."""
        self._delayed.append(_note(call, "finished", result))

    async def waiting(self, calls: Sequence[Call]) -> None:
        """A person is asked before any of these calls starts."""
        await self._commit([_note(call, "not_started") for call in calls])

    async def started(self, calls: Sequence[Call]) -> None:
        """The bodies of these calls are about to start; until this returns they must not.

        Raises LeaseLostError.
        """
        if calls:
            await self._commit([_note(call, "started") for call in calls], self.lease)

    async def asking(self, call: Call) -> None:
        """The body of a call has stopped to ask a person: it will run again."""
        await self._commit([_note(call, "asking")])

    async def finished(self, call: Call, result: Any) -> None:
        """A call has its result, a JSON value; it will never run again."""
        await self._commit([_note(call, "finished", result)])

    async def catch_up(self) -> None:
        """Commit what was to be noted with the next note."""
        if self._delayed:
            await self._commit([])

    async def _commit(self, notes: Sequence[dict[str, Any]], lease: Lease | None = None) -> None:
        if self.in_use and self.log is not None:
            delayed, self._delayed = self._delayed, []
            kind, notes = _kind(self.message_id), [*delayed, *notes]
            await self.log.commit(self.thread, kind, notes, full=self.full, lease=lease)
            self._finished |= {note["call"] for note in notes if note["fate"] == "finished"}


def _note(call: Call, fate: FateKind, result: Any = None) -> dict[str, Any]:
    id, arguments = _key(call)
    note = {"call": id, "arguments": arguments, "fate": fate}
    return note if result is None else {**note, "result": result}


def _key(call: Call) -> Key:
    return call.id, fingerprint(call.arguments)


def _kind(message_id: str) -> str:
    """A kind of its own per message, so that a look-up reads no other entries."""
    return f"{JOURNAL}{message_id}"
