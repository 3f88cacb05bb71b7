"""What became of the messages that a script put in: one named check for each key of `expect`.

A check gives the reason why its key is not met, or None.
"""

from collections import Counter
from collections.abc import Mapping

from tests.conformance.checks import equal
from tests.conformance.scenarios.outcome import Outcome


def order(outcome: Outcome, wanted: list[str]) -> str | None:
    """The ledger has these texts (or ids of calls), each as often as named, in this order."""
    return equal([word for word in outcome.words if word in wanted], wanted)


def order_any_of(outcome: Outcome, orders: list[list[str]]) -> str | None:
    """One of these orders."""
    reasons = [order(outcome, wanted) for wanted in orders]
    return None if None in reasons else "; ".join(str(reason) for reason in reasons)


def order_contains(outcome: Outcome, wanted: list[str]) -> str | None:
    """These texts follow each other in the ledger, whatever stands between them."""
    words = iter(outcome.words)
    missing = [text for text in wanted if text not in words]
    return f"{missing[0]!r} is not at its place in {outcome.words}" if missing else None


def each_once(outcome: Outcome, wanted: list[str] | bool) -> str | None:
    """These texts (all, if it only says true) were delivered as often as they were put in.

    What still waits must be delivered by the next run, and may only wait if it came too late or the
    last run did not complete.
    """
    counts, put_in = Counter(outcome.delivered_later), Counter(outcome.record.given)
    texts = put_in if wanted is True else wanted or []
    wrong = {text: counts[text] for text in texts if counts[text] != (put_in[text] or 1)}
    if wrong:
        return f"delivered this often: {wrong}"
    if outcome.last.get("status") != "completed":
        return None
    left = Counter(outcome.waiting) - Counter(outcome.record.late)
    return f"not delivered by the run: {[*left]}" if any(text in left for text in texts) else None


def gone(outcome: Outcome) -> list[str]:
    """The texts that were put in and are neither in the ledger nor in a queue any more."""
    there = Counter(outcome.delivered) + Counter(outcome.waiting)
    return [*(Counter(outcome.record.given) - there).elements()]


def lost(outcome: Outcome, texts: list[str]) -> str | None:
    """These texts, and no others, are gone."""
    return equal(sorted(gone(outcome)), sorted(texts))


def not_lost(outcome: Outcome, texts: list[str]) -> str | None:
    """These texts were put in, and none of them is gone."""
    there = [*outcome.delivered, *outcome.waiting]
    return equal([text for text in texts if text in gone(outcome) or text not in there], [])


def delivered(outcome: Outcome, texts: list[str]) -> str | None:
    """The ledger has each of these texts."""
    return equal([text for text in texts if text not in outcome.words], [])


def queued(outcome: Outcome, texts: list[str]) -> str | None:
    """These texts, and no others, still wait, the steering ones first."""
    return equal(outcome.waiting, texts)


def delivered_or_queued(outcome: Outcome, texts: list[str]) -> str | None:
    """Each of these texts is in the ledger or in a queue, as often as it was put in."""
    there = Counter([*outcome.delivered, *outcome.waiting])
    put_in = Counter(outcome.record.given)
    wrong = {text: there[text] for text in texts if there[text] != (put_in[text] or 1)}
    return f"there this often: {wrong}" if wrong else None


def count_of(outcome: Outcome, counts: Mapping[str, int]) -> str | None:
    """How often the ledger has each of these texts or calls."""
    return equal({text: outcome.words.count(text) for text in counts}, dict(counts))


def user_messages_seen_by_model_in_order(outcome: Outcome, texts: list[str]) -> str | None:
    """The last request has exactly these user texts."""
    return equal(outcome.record.asked[-1] if outcome.record.asked else [], texts)


def became(text: str, outcome: Outcome, said: str) -> str | None:
    """What the sentence says became of the text (`kept in queue or delivered, not dropped`)."""
    for part in said.split(","):
        ways = [way.strip() for way in part.split(" or ")]
        unknown = [way for way in ways if way not in FATES]
        if unknown:
            return f"unknown fate {unknown[0]!r}"
        if not any(FATES[way](text, outcome) for way in ways):
            return (
                f"not {part.strip()}: the queue has {outcome.waiting}, the ledger {outcome.words}"
            )
    return None


def _waits(text: str, outcome: Outcome) -> bool:
    return text in outcome.waiting


def _is_delivered(text: str, outcome: Outcome) -> bool:
    return text in outcome.delivered


def _is_delivered_next(text: str, outcome: Outcome) -> bool:
    return text in outcome.delivered_later


def _is_there(text: str, outcome: Outcome) -> bool:
    return text not in gone(outcome)


def _never(text: str, outcome: Outcome) -> bool:
    return False  # the runtime keeps what is queued and hands nothing back


FATES = {
    **dict.fromkeys(("kept in queue", "kept in the queue", "still queued", "queued"), _waits),
    **dict.fromkeys(("delivered", "reaches the model"), _is_delivered),
    **dict.fromkeys(("delivered by the next run", "delivered in the next run"), _is_delivered_next),
    **dict.fromkeys(("not dropped silently", "not dropped", "not lost"), _is_there),
    "returned to the caller": _never,
}
"""What may become of a message, in the words of the cases."""
