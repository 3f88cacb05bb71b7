"""How a ledger that a dead run left behind is made valid again: named steps, composed in one place.

What valid means lives in `transcript`; when a stored ledger is repaired is decided by `load`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise

from langchain_core.messages import AnyMessage, ToolMessage

from loopwright.state.call_ids import with_own_call_ids
from loopwright.state.messages import Call, calls, new_id
from loopwright.state.transcript import faults, names_agree

INTERRUPTED = (
    "interrupted: the run ended before this call had a result; "
    "it may have taken effect, so check before doing it again"
)
"""What stands as the result of a call whose own result is not known."""

NOT_EXECUTED = "not executed: the run ended before this call was started, so it had no effect"
"""What stands as the result of a call of which the journal knows that it never started."""

_MARK = "interrupted"


@dataclass(frozen=True)
class RepairReport:
    """What a repair did, as counts; all zero means that the ledger was valid already."""

    synthesized: int = 0
    """Interrupted markers made for calls without a result."""

    dropped_orphans: int = 0
    """Results left out because no earlier call has their id."""

    deduplicated: int = 0
    """Messages stored twice, and further results of a call that has one."""

    moved: int = 0
    """Results that came to stand behind another message than before."""

    renamed: int = 0
    """Results that named another tool than their call."""

    fresh_ids: int = 0
    """Calls with a blank or used id that got one of their own."""

    recovered: int = 0
    """Open calls answered with a known result."""

    identified: int = 0
    """Messages that had no id of their own."""

    @property
    def changed(self) -> bool:
        """Whether anything differs from what was given."""
        return any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """The counts by name, plain JSON."""
        return asdict(self)


def interrupted(call: Call) -> ToolMessage:
    """The marker that answers a call whose result is not known."""
    return _marker(call, INTERRUPTED)


def not_executed(call: Call) -> ToolMessage:
    """The marker that answers a call that never started."""
    return _marker(call, NOT_EXECUTED)


def _marker(call: Call, text: str) -> ToolMessage:
    return ToolMessage(
        content=text,
        id=f"tool-result-{call.id}",
        tool_call_id=call.id,
        name=call.name,
        status="error",
        response_metadata={_MARK: True},
    )


def is_interrupted(result: ToolMessage) -> bool:
    """Whether a result is only a marker: by its mark, or by its text where the mark was lost."""
    texts = (INTERRUPTED, NOT_EXECUTED)
    return result.response_metadata.get(_MARK) is True or result.content in texts


def repair(
    messages: Sequence[AnyMessage],
    results: Mapping[str, ToolMessage] | None = None,
    extra: Mapping[str, Sequence[AnyMessage]] | None = None,
) -> tuple[list[AnyMessage], RepairReport]:
    """A valid ledger (`transcript.faults` finds nothing) with everything a model or tool did.

    `results` are known results by call id (of a journal); they answer calls that are open. `extra`
    are messages by call id that stand behind all results of their message if the call is open (what
    a tool has sent along, S1-06).

    Contract (S1-28, K2): O(n), nothing given is changed, messages that stay as they are stay the
    same objects, and repairing the outcome again changes nothing. In order: copies of one message
    are stored once, calls get ids of their own, each call takes the first real result of its window
    (from the call to the next one of the same original id) or else a marker that is there, results
    are placed behind their call in the order of declaration, what is missing gets a marker.
    """
    if not faults(messages):
        return list(messages), RepairReport()
    tally: Counter[str] = Counter()
    rows = _without_copies(messages, tally)
    renumbered = _with_own_call_ids(rows, tally)
    answers = _answers(rows, renumbered, tally)
    placed = _placed(renumbered, answers, _Known(results or {}, extra or {}), tally)
    tally["moved"] = _moved(placed)
    mended = _with_own_ids(placed, tally)
    return mended, RepairReport(**tally)


@dataclass(frozen=True)
class _Row:
    """A message with its index in what was given; None for one that is new."""

    message: AnyMessage
    origin: int | None


@dataclass(frozen=True)
class _Result(_Row):
    """The row of a result."""

    message: ToolMessage


def _without_copies(messages: Sequence[AnyMessage], tally: Counter[str]) -> list[_Row]:
    """Leaves out a message that stands there already: same id, same content."""
    first: dict[str, AnyMessage] = {}
    seen: set[tuple[str, ...]] = set()
    rows: list[_Row] = []
    for origin, message in enumerate(messages):
        if message.id and message.id in first:
            seen.add(_identity(first[message.id]))
            if _identity(message) in seen:
                tally["deduplicated"] += 1
                continue
            seen.add(_identity(message))
        elif message.id:
            first[message.id] = message
        rows.append(_Row(message, origin))
    return rows


def _identity(message: AnyMessage) -> tuple[str, ...]:
    """What makes two stored messages the same one; counts and metadata do not."""
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    return (str(message.id), message.type, repr(message.content), repr(calls(message)), answers)


def _with_own_call_ids(rows: Sequence[_Row], tally: Counter[str]) -> list[_Row]:
    """Gives a fresh id to every call whose id is blank or was used by an earlier call."""
    reserved = {call.id for row in rows for call in calls(row.message)}
    used: set[str] = set()
    renumbered: list[_Row] = []
    for row in rows:
        message = with_own_call_ids(row.message, used, reserved)
        if message is not row.message:
            pairs = zip(calls(row.message), calls(message), strict=True)
            tally["fresh_ids"] += sum(old.id != new.id for old, new in pairs)
        renumbered.append(_Row(message, row.origin))
    return renumbered


@dataclass
class _Window:
    """The calls of one original id in one message (by final id), and the results meant for them."""

    ids: list[str] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)

    def taken(self) -> list[_Result]:
        """As many results as there are calls: real ones before markers, then in stored order."""
        by_worth = sorted(self.results, key=lambda row: is_interrupted(row.message))
        return sorted(by_worth[: len(self.ids)], key=lambda row: row.origin or 0)


def _answers(
    rows: Sequence[_Row], renumbered: Sequence[_Row], tally: Counter[str]
) -> dict[str, _Result]:
    """The result of each call by the call's final id; results without a call are left out."""
    windows: list[_Window] = []
    current: dict[str, _Window] = {}
    for before, after in zip(rows, renumbered, strict=True):
        if isinstance(before.message, ToolMessage):
            if window := current.get(before.message.tool_call_id):
                window.results.append(_Result(before.message, before.origin))
            else:
                tally["dropped_orphans"] += 1
            continue
        opened: defaultdict[str, _Window] = defaultdict(_Window)
        for old, new in zip(calls(before.message), calls(after.message), strict=True):
            opened[old.id].ids.append(new.id)
        current |= opened
        windows += opened.values()
    answers: dict[str, _Result] = {}
    for window in windows:
        taken = window.taken()
        tally["deduplicated"] += len(window.results) - len(taken)
        answers |= dict(zip(window.ids, taken, strict=False))
    return answers


@dataclass(frozen=True)
class _Known:
    """What is known of open calls, by call id: their results, and what comes with those."""

    results: Mapping[str, ToolMessage]
    extra: Mapping[str, Sequence[AnyMessage]]


def _placed(
    rows: Sequence[_Row], answers: Mapping[str, _Result], known: _Known, tally: Counter[str]
) -> list[_Row]:
    """The messages in their order, each call's result directly behind, in order of declaration."""
    placed: list[_Row] = []
    for row in rows:
        if isinstance(row.message, ToolMessage):
            continue
        placed.append(row)
        extra: list[AnyMessage] = []
        for call in calls(row.message):
            answer = answers.get(call.id) or _found(call, known.results, tally)
            placed.append(_Row(_fitted(answer.message, call, tally), answer.origin))
            extra += known.extra.get(call.id, ()) if answer.origin is None else ()
        placed += [_Row(message, None) for message in extra]
    return placed


def _found(call: Call, results: Mapping[str, ToolMessage], tally: Counter[str]) -> _Result:
    """The result of a call that the ledger does not answer: a known one, or the marker."""
    result = results.get(call.id) or interrupted(call)
    tally["synthesized" if is_interrupted(result) else "recovered"] += 1
    return _Result(result, None)


def _fitted(result: ToolMessage, call: Call, tally: Counter[str]) -> ToolMessage:
    """The result under the id and the name of its call."""
    update: dict[str, str] = {}
    if result.tool_call_id != call.id:
        update["tool_call_id"] = call.id
    if not names_agree(call, result):
        update["name"] = call.name
        tally["renamed"] += 1
    return result.model_copy(update=update) if update else result


def _moved(placed: Sequence[_Row]) -> int:
    """How many results stand behind another message than before, markers and dropped ones aside."""
    now = [row.origin for row in placed if row.origin is not None]
    before = {b: a for a, b in pairwise(sorted(now))}
    results = {row.origin for row in placed if isinstance(row.message, ToolMessage)}
    return sum(before.get(b) != a for a, b in pairwise(now) if b in results)


def _with_own_ids(rows: Sequence[_Row], tally: Counter[str]) -> list[AnyMessage]:
    """Gives a new id to every message that has none, or one that is another message's.

    What was stored keeps its id rather than what is new, and the earlier rather than the later.
    """
    stored = {row.message.id for row in rows if row.origin is not None}
    taken: set[str] = set()
    own: list[AnyMessage] = []
    for row in rows:
        id = row.message.id
        if not id or id in taken or (row.origin is None and id in stored):
            id = new_id()
            tally["identified"] += 1
        taken.add(id)
        same = id == row.message.id
        own.append(row.message if same else row.message.model_copy(update={"id": id}))
    return own
