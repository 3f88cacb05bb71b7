"""What the keys of `expect` mean for a transcript that was loaded: one named check for each.

A check gives the reason why its key is not met, or None. Keys for people are known and pass.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.state.messages import calls
from loopwright.state.repair import is_interrupted
from tests.conformance.loading import Loaded
from tests.conformance.short_messages import shows


@dataclass(frozen=True)
class Outcome:
    """A transcript before loading, after it, and after loading the outcome once more."""

    before: list[AnyMessage]
    loaded: Loaded
    again: Loaded

    @property
    def after(self) -> list[AnyMessage]:
        """The ledger after the first load."""
        return self.loaded.messages

    @property
    def results(self) -> list[ToolMessage]:
        """The results in the ledger, in order."""
        return [message for message in self.after if isinstance(message, ToolMessage)]

    @property
    def synthetic(self) -> list[str]:
        """The ids of the calls that were answered with a marker, in order."""
        return [result.tool_call_id for result in self.results if is_interrupted(result)]

    @property
    def open(self) -> list[str]:
        """The ids of the calls that have no result, in order."""
        return unanswered(self.after)

    @property
    def lost(self) -> list[str]:
        """The ids of stored messages that are no longer there, in order."""
        there = {message.id for message in self.after}
        return [str(message.id) for message in self.before if message.id not in there]


Check = Callable[[Any, Any], str | None]
"""Given the outcome and what the key says."""


def unmet(expect: Mapping[str, Any], outcome: Any, checks: Mapping[str, Check]) -> list[str]:
    """The reasons why an outcome does not meet an expectation; an unknown key is one."""
    reasons: list[str] = []
    for key, wanted in expect.items():
        check = checks.get(key) or _by_prefix(key, checks)
        if check is None:
            reasons.append(f"unknown key {key!r} in expect")
        elif reason := check(outcome, wanted):
            reasons.append(f"{key}: {reason}")
    return reasons


def _by_prefix(key: str, checks: Mapping[str, Check]) -> Check | None:
    """The check of a key whose end is a value of its own (`call_messages_with_c1`)."""
    for prefix, check in checks.items():
        if prefix.endswith("*") and key.startswith(prefix[:-1]):
            rest = key.removeprefix(prefix[:-1])
            return lambda outcome, wanted: check(outcome, (rest, wanted))
    return None


def unanswered(ledger: list[AnyMessage]) -> list[str]:
    """The ids of the calls without a result anywhere in a ledger, in order."""
    answered = {m.tool_call_id for m in ledger if isinstance(m, ToolMessage)}
    return [call.id for m in ledger for call in calls(m) if call.id not in answered]


def for_people(outcome: Any, wanted: Any) -> None:
    """A text for the reader, such as another outcome that would be accepted too."""


PEOPLE: dict[str, Check] = dict.fromkeys(("alt_ok", "note", "must", "then", "example"), for_people)


def equal(actual: Any, wanted: Any) -> str | None:
    """The reason if two values differ."""
    return None if actual == wanted else f"is {actual!r}, expected {wanted!r}"


def messages(outcome: Outcome, rows: list[dict[str, Any]]) -> str | None:
    """Exactly these messages in this order."""
    fits = len(rows) == len(outcome.after) and all(map(shows, outcome.after, rows))
    return None if fits else f"the ledger is {_told(outcome.after)}, expected {rows}"


def unchanged(outcome: Outcome, wanted: bool) -> str | None:
    """The ledger is what it was, and no repair was told."""
    same = outcome.after == outcome.before and not any(outcome.loaded.report.values())
    return None if same is wanted else f"the ledger is {_told(outcome.after)}"


def idempotent(outcome: Outcome, wanted: bool) -> str | None:
    """A second load changes nothing."""
    same = outcome.again.messages == outcome.after and not any(outcome.again.report.values())
    return None if same is wanted else f"a second load gives {_told(outcome.again.messages)}"


def each_call_answered_once(outcome: Outcome, wanted: list[str] | bool) -> str | None:
    """These calls (all, if it only says true) are there, with one result each."""
    made = [call.id for message in outcome.after for call in calls(message)]
    counts = Counter(result.tool_call_id for result in outcome.results)
    ids = made if wanted is True else wanted or []
    wrong = [id for id in ids if counts[id] != 1 or made.count(id) != 1]
    return f"not so for {wrong} in {_told(outcome.after)}" if wrong else None


def kept(outcome: Outcome, ids: list[str]) -> str | None:
    """These messages are there with the content that they had."""
    gone = [id for id in ids if not _is_kept(outcome, id)]
    return f"{gone} not in {_told(outcome.after)}" if gone else None


def kept_any_of(outcome: Outcome, ids: list[str]) -> str | None:
    """At least one of these messages is there with its content."""
    there = any(_is_kept(outcome, id) for id in ids)
    return None if there else f"none in {_told(outcome.after)}"


def dropped(outcome: Outcome, ids: list[str]) -> str | None:
    """These messages, and no others, are no longer there."""
    return equal(sorted(outcome.lost), sorted(ids))


def not_lost(outcome: Outcome, ids: list[str]) -> str | None:
    """None of these messages is gone."""
    return equal([id for id in ids if id in outcome.lost], [])


def synthetic_for(outcome: Outcome, ids: list[str]) -> str | None:
    """These calls, and no others, were answered with a marker."""
    return equal(sorted(outcome.synthetic), sorted(ids))


def synthetic_results(outcome: Outcome, wanted: int | list[str]) -> str | None:
    """This many markers, or markers for exactly these calls."""
    if isinstance(wanted, list):
        return synthetic_for(outcome, wanted)
    return equal(len(outcome.synthetic), wanted)


def synthetic_after(outcome: Outcome, id: str) -> str | None:
    """Every marker stands among the results directly behind this message."""
    behind = {result.tool_call_id for result in _behind(outcome.after, id)}
    wrong = [call for call in outcome.synthetic if call not in behind]
    return f"{wrong} elsewhere in {_told(outcome.after)}" if wrong or not behind else None


def results_adjacent_to(outcome: Outcome, id: str) -> str | None:
    """Directly behind this message stand the results of its calls and no others."""
    made = [call.id for message in outcome.after if message.id == id for call in calls(message)]
    behind = [result.tool_call_id for result in _behind(outcome.after, id)]
    return None if made and behind == made else f"not so in {_told(outcome.after)}"


def call_messages_with(outcome: Outcome, wanted: tuple[str, int]) -> str | None:
    """How many messages make this call."""
    id, count = wanted
    made = [m for m in outcome.after if id in [call.id for call in calls(m)]]
    return equal(len(made), count)


def pairs(outcome: Outcome, wanted: list[list[str]]) -> str | None:
    """For each pair of ids: this result answers a call of this message."""
    owners = {call.id: m.id for m in outcome.after for call in calls(m)}
    there = [[owners.get(result.tool_call_id), result.id] for result in outcome.results]
    wrong = [pair for pair in wanted if pair not in there]
    return f"{wrong} not in {there}" if wrong else None


def results_in_order(outcome: Outcome, ids: list[str]) -> str | None:
    """The real results are these in this order, and the calls are answered in their order."""
    made = [call.id for message in outcome.after for call in calls(message)]
    answered = [result.tool_call_id for result in outcome.results]
    real = [result.id for result in outcome.results if not is_interrupted(result)]
    return equal(real, ids) or equal(answered, made)


def wire_call_ids_unique_within_message(outcome: Outcome, wanted: bool) -> str | None:
    """In what is sent, no message has two calls of one id."""
    sent = [[c["id"] for c in row.get("tool_calls", [])] for row in outcome.loaded.sent]
    return equal(all(len(ids) == len(set(ids)) for ids in sent), wanted)


def order(outcome: Outcome, ids: list[str]) -> str | None:
    """These messages stand in this order."""
    return equal([m.id for m in outcome.after if m.id in ids], ids)


def order_any_of(outcome: Outcome, orders: list[list[str]]) -> str | None:
    """One of these orders."""
    reasons = [order(outcome, ids) for ids in orders]
    return None if None in reasons else "; ".join(str(reason) for reason in reasons)


def open_calls(outcome: Outcome, ids: list[str]) -> str | None:
    """The calls without a result in the stored transcript."""
    return equal(outcome.open, ids)


def any_of(outcome: Outcome, expectations: list[dict[str, Any]]) -> str | None:
    """At least one of these expectations is met in full."""
    reasons = [unmet(expect, outcome, TRANSCRIPT) for expect in expectations]
    return None if [] in reasons else f"none is met: {reasons}"


def _is_kept(outcome: Outcome, id: str) -> bool:
    before = [m.content for m in outcome.before if m.id == id]
    return any(m.id == id and m.content in before for m in outcome.after)


def _behind(ledger: list[AnyMessage], id: str) -> list[ToolMessage]:
    """The results directly behind a message."""
    found: list[ToolMessage] = []
    at = next((i for i, message in enumerate(ledger) if message.id == id), len(ledger))
    for message in ledger[at + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        found.append(message)
    return found


def _told(ledger: list[AnyMessage]) -> str:
    """A ledger in one line for a reason."""
    return " ".join(_word(message) for message in ledger)


def _word(message: AnyMessage) -> str:
    if isinstance(message, AIMessage):
        return f"{message.id}({','.join(call.id for call in calls(message))})"
    if isinstance(message, ToolMessage):
        return f"{message.id}->{message.tool_call_id}{'!' if is_interrupted(message) else ''}"
    return str(message.id)


TRANSCRIPT: dict[str, Check] = {
    **PEOPLE,
    "any_of": any_of,
    "call_messages_with_*": call_messages_with,
    "dropped": dropped,
    "each_call_answered_once": each_call_answered_once,
    "idempotent": idempotent,
    "kept": kept,
    "kept_any_of": kept_any_of,
    "lost": dropped,
    "messages": messages,
    "not_lost": not_lost,
    "open_calls": open_calls,
    "order": order,
    "order_any_of": order_any_of,
    "pairs": pairs,
    "results_adjacent_to": results_adjacent_to,
    "results_in_order": results_in_order,
    "synthetic_after": synthetic_after,
    "synthetic_for": synthetic_for,
    "synthetic_results": synthetic_results,
    "unchanged": unchanged,
    "wire_call_ids_unique_within_message": wire_call_ids_unique_within_message,
}
