"""The keys of `expect` that a script may have, and expectations within expectations.

What a single key means stands in `fates` and `endings`. Keys for people are known and pass.
"""

from functools import partial
from typing import Any

from tests.conformance.checks import PEOPLE, Check, unmet
from tests.conformance.scenarios import endings, fates
from tests.conformance.scenarios.outcome import Outcome


def checks_of(outcome: Outcome) -> dict[str, Check]:
    """The checks by their keys; the text of a message is a key too, told what became of it."""
    texts = {text: partial(fates.became, text) for text in outcome.record.given}
    return {**texts, **SCRIPT}


def any_of(outcome: Outcome, expectations: list[dict[str, Any]]) -> str | None:
    """At least one of these expectations is met in full."""
    reasons = [unmet(expect, outcome, checks_of(outcome)) for expect in expectations]
    return None if [] in reasons else f"none is met: {reasons}"


def not_(outcome: Outcome, expectation: dict[str, Any]) -> str | None:
    """None of these keys is met; an unknown one is a fault all the same."""
    for key, wanted in expectation.items():
        reasons = unmet({key: wanted}, outcome, checks_of(outcome))
        if not reasons or reasons[0].startswith("unknown"):
            return f"{key}: {reasons[0] if reasons else 'is met'}"
    return None


SCRIPT: dict[str, Check] = {
    **PEOPLE,
    "answered_with_error": endings.answered_with_error,
    "any_of": any_of,
    "clear_error": endings.clear_message,
    "clear_message": endings.clear_message,
    "count_of": fates.count_of,
    "delivered": fates.delivered,
    "delivered_or_queued": fates.delivered_or_queued,
    "each_once": fates.each_once,
    "either": any_of,
    "ends_with": endings.ends_with,
    "executed_calls": endings.executed_calls,
    "final": endings.final,
    "lost": fates.lost,
    "marked_as": endings.marked_as,
    "max_model_calls": endings.max_model_calls,
    "model_calls": endings.model_calls,
    "never_later_overwritten_by": endings.never_later_overwritten_by,
    "next_turn_ok": endings.thread_usable_after,
    "no_exception": endings.no_exception,
    "no_process_left": endings.no_process_left,
    "no_stop": endings.no_stop,
    "no_task_left": endings.no_task_left,
    "not": not_,
    "not_lost": fates.not_lost,
    "open_calls": endings.open_calls,
    "order": fates.order,
    "order_any_of": fates.order_any_of,
    "order_contains": fates.order_contains,
    "queued": fates.queued,
    "status": endings.status,
    "status_any_of": endings.status_any_of,
    "stops_within_s": endings.stops_within_s,
    "stored_as_final": endings.stored_as_final,
    "synthetic_for": endings.synthetic_for,
    "synthetic_results": endings.synthetic_results,
    "text_duplicated": endings.text_duplicated,
    "thread_usable_after": endings.thread_usable_after,
    "tool_runs": endings.tool_runs,
    "user_messages_seen_by_model_in_order": fates.user_messages_seen_by_model_in_order,
}
