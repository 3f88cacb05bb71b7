"""What must hold of a thread whose workers were killed: pure functions from what is known of it.

Who kills and who asks is in `round`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from loopwright.state.repair import INTERRUPTED, NOT_EXECUTED
from tests.chaos.told import Ended, Found, Line, Queued, Told
from tests.chaos.world import REPEATABLE, Effect

T = TypeVar("T")


@dataclass
class Record:
    """What was acknowledged: everything here has reached another process than the one it is of."""

    told: list[Told] = field(default_factory=list)
    queued: list[Queued] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    def lines(self) -> list[Line]:
        """The messages that were told to be complete, in order."""
        return [told.line for told in self.told if told.line is not None]


def violations(found: Found, record: Record, effects: Sequence[Effect]) -> list[str]:
    """What does not hold; empty if all does. To be asked while nobody works on the thread."""
    return [
        *(f"the file is damaged: {damage}" for damage in found.damage),
        *(f"the transcript is not valid: {fault}" for fault in found.faults),
        *_unkept(found, record.lines()),
        *_lost_or_doubled(found, record.queued),
        *_undelivered(found),
        *_repeated(effects),
        *_rekeyed(effects),
        *_unused(found, record.told, effects),
        *_gaps(record.told),
        *_interleaved(found.lines, record.told),
        *_unended(found, record),
    ]


def unfinished(found: Found) -> list[str]:
    """What is left open on a thread whose last run has come to its end."""
    return [
        *(f"call {call} has no result" for call in found.open_calls),
        *([f"the run {found.run} is not over"] if found.run and found.run[1] != "ended" else []),
        *(f"{text!r} still waits" for text in found.waiting),
        *(f"{holder} still holds the thread" for holder in found.leases),
    ]


def _unkept(found: Found, told: Sequence[Line]) -> Iterator[str]:
    """A complete message stands for good: once, as it was told, and in the order of telling.

    The result of a call of an unfinished sequence stands in the journal; the run that carries the
    sequence on tells it again, under the same id.
    """
    stored = found.lines
    by_id = {line.id: line for line in stored}
    if len(by_id) < len(stored):
        yield "two messages have one id"
    for line in told:
        if by_id.get(line.id) != line and not _is_journaled(line, found):
            yield f"told {line}, but the transcript has {by_id.get(line.id)}"
    ids, expected = [line.id for line in stored], list(dict.fromkeys(line.id for line in told))
    known = set(expected)
    if [id for id in ids if id in known] != [id for id in expected if id in by_id]:
        yield "the messages stand in another order than they were told in"


def _is_journaled(line: Line, found: Found) -> bool:
    call = line.answers
    return call in found.open_calls and found.finished.get(call) == line.text


def _lost_or_doubled(found: Found, queued: Sequence[Queued]) -> Iterator[str]:
    """A queued message is in the transcript once, or still waits."""
    places = Counter(line.text for line in found.lines if line.type == "human")
    places.update(found.waiting)
    for message in queued:
        if places[message.text] != 1:
            yield f"{message} is there {places[message.text]} times"


def _undelivered(found: Found) -> Iterator[str]:
    """The cursor counts exactly the messages as delivered that are in the transcript."""
    texts = {line.text for line in found.lines if line.type == "human"}
    yield from (f"{t!r} counts as delivered and is not" for t in found.delivered if t not in texts)
    yield from (f"{t!r} was delivered and still waits" for t in found.waiting if t in texts)


def _repeated(effects: Sequence[Effect]) -> Iterator[str]:
    """No unsafe tool takes effect twice for one call."""
    calls = [f"{e.tool} {e.message} {e.call}" for e in effects if e.tool not in REPEATABLE]
    yield from (f"{call} took effect more than once" for call in _twice(calls))


def _rekeyed(effects: Sequence[Effect]) -> Iterator[str]:
    """A call has one idempotency key, however often it takes effect, and no other call has it."""
    pairs = {((effect.message, effect.call), effect.key) for effect in effects}
    yield from (f"call {call} came with several keys" for call in _twice([c for c, _ in pairs]))
    yield from (f"several calls came with key {key!r}" for key in _twice([k for _, k in pairs]))


def _unused(found: Found, told: Sequence[Told], effects: Sequence[Effect]) -> Iterator[str]:
    """The result that a call was told or noted to have is the one in the transcript.

    That of a reading tool may be read again. A result is that of an effect of its very call.
    """
    results = {line.answers: line.text for line in found.lines if line.answers is not None}
    final = [(event.call, event.text) for event in told if event.call and event.tool != "look"]
    for call, text in [*final, *found.finished.items()]:
        if call in results and results[call] != text:
            yield f"call {call} had {text!r}, and now has {results[call]!r}"
    made = {(effect.call, effect.text) for effect in effects}
    for call, text in results.items():
        if text not in (INTERRUPTED, NOT_EXECUTED) and (call, text) not in made:
            yield f"call {call} has the result {text!r}, which none of its effects had"
    for call in sorted(call for call, _ in made if results.get(call) == NOT_EXECUTED):
        yield f"call {call} is said not to have been executed, and took effect"


def _gaps(told: Sequence[Told]) -> Iterator[str]:
    """The events of a run are numbered from 0 without gaps."""
    numbers: dict[str, list[int]] = {}
    for event in told:
        numbers.setdefault(event.run, []).append(event.sequence)
    for run, sequence in numbers.items():
        if sequence != list(range(len(sequence))):
            yield f"run {run} has the events {sequence}"


def _interleaved(stored: Sequence[Line], told: Sequence[Told]) -> Iterator[str]:
    """One run after the other worked on the thread: their messages stand in blocks."""
    run_of = {event.line.id: event.run for event in told if event.line is not None}
    blocks = [run for run, _ in groupby(run_of[line.id] for line in stored if line.id in run_of)]
    yield from (f"run {run} goes on behind another one" for run in _twice(blocks))


def _twice(names: Sequence[T]) -> list[T]:
    return [name for name, count in Counter(names).items() if count > 1]


def _unended(found: Found, record: Record) -> Iterator[str]:
    """A run that was told to be over is over, and every run that came to its end was completed."""
    over = {event.run for event in record.told if event.type == "agent_end"}
    if found.run is not None and found.run[0] in over and found.run[1] != "ended":
        yield f"run {found.run[0]} was told to be over and is {found.run[1]}"
    yield from (f"a run ended as {e}" for e in record.ended if e.status != "completed")
