"""Whether calls and results belong together wherever they stand: each call has one later result.

This is what a transcript needs to be understood (S0-05); the order in which a ledger keeps and
sends them is stricter and lives in `transcript`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from loopwright.errors import TranscriptError
from loopwright.state.messages import Call, calls
from loopwright.state.transcript import Fault, names_agree

Found = list[tuple[int, Call]]
Results = list[tuple[int, ToolMessage]]


def link_faults(
    messages: Iterable[BaseMessage],
    *,
    broken_calls: Collection[str] = frozenset(),
    broken_results: Collection[str] = frozenset(),
) -> list[Fault]:
    """The faults between calls and results, wherever in the list they stand.

    `broken_calls` and `broken_results` are ids of calls and results that are in the transcript, but
    not in a form that could be read: nothing is said to be missing or unexpected because of them.
    A call id that is used twice has that fault only.
    """
    made: dict[str, Found] = defaultdict(list)
    given: dict[str, Results] = defaultdict(list)
    for at, message in enumerate(messages):
        for call in calls(message):
            made[call.id].append((at, call))
        if isinstance(message, ToolMessage):
            given[message.tool_call_id].append((at, message))
    faults = [Fault("duplicate_call_id", at, id) for id in made for at, _ in made[id][1:]]
    faults += [Fault("duplicate_result", at, id) for id in given for at, _ in given[id][1:]]
    for id, results in given.items():
        if id not in broken_calls:
            faults += _unexpected(id, made.get(id, []), results)
    for id, found in made.items():
        if len(found) == 1 and id not in broken_calls and id not in broken_results:
            faults += _missing(id, found[0][0], given.get(id, []))
    return sorted(faults, key=lambda fault: fault.at)


def _unexpected(id: str, found: Found, results: Results) -> Iterable[Fault]:
    """What is wrong with the results of one call id."""
    if not found:
        return [Fault("orphan_result", at, id) for at, _ in results]
    if len(found) > 1:
        return []
    ((call_at, call),) = found
    early = [Fault("result_before_call", at, id) for at, _ in results if at < call_at]
    return early + [
        Fault("wrong_result_name", at, id)
        for at, result in results
        if at > call_at and not names_agree(call, result)
    ]


def _missing(id: str, call_at: int, results: Results) -> Iterable[Fault]:
    answered = any(at > call_at for at, _ in results)
    return [] if answered else [Fault("unanswered_call", call_at, id)]


def require_linked(messages: Sequence[AnyMessage]) -> None:
    """Raise TranscriptError unless each call has one later result and each result its call."""
    faults = link_faults(messages)
    if faults:
        told = ", ".join(
            f"{f.kind.replace('_', ' ')} {f.id!r} (message {f.at})" for f in faults[:5]
        )
        raise TranscriptError(
            f"calls and results do not belong together: {told}. Send a transcript in which every "
            "call has one result behind it",
            kinds=list(dict.fromkeys(fault.kind for fault in faults)),
        )
