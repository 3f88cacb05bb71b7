"""What answers have used and cost, and the totals of runs and threads: plain JSON values.

A message carries its own counts and its cost (`providers.prices` finds it). Limits are in `limits`.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from typing_extensions import TypedDict

COST, ESTIMATED = "cost", "estimated"
"""Keys in `response_metadata`: what an answer has cost, and whether its counts are estimates."""

COSTS = "costs"
"""Key in the metadata of a chunk: the costs reported so far, the last one counts. A list, since
langchain puts together what all chunks say, and cannot with numbers."""


class Usage(TypedDict, total=False):
    """Totals of a run or a thread. One that was stored by an earlier version may lack a field."""

    input_tokens: int
    """All that was sent, with what a cache held."""

    output_tokens: int
    total_tokens: int
    cached_tokens: int
    """Of the input, what was read from a provider's cache."""

    cache_write_tokens: int
    reasoning_tokens: int
    """Of the output, or beside it where a provider counts so, what was thought."""

    cost: float | None
    """In US dollars; None as soon as the cost of one answer is not known."""

    known_cost: float
    """The part of it that is known: all of it, or a lower bound."""

    estimated: bool
    """Whether some of the tokens are estimates, since a provider did not count them."""


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def nothing() -> Usage:
    """The totals of no answer at all."""
    return _made(dict.fromkeys(_COUNTS, 0), cost=0.0, known=0.0, estimated=False)


def usage_of(messages: Sequence[AnyMessage], aside: Mapping[str, Any] | None = None) -> Usage:
    """The totals over the answers among these messages, and what was used `aside` of them."""
    total = nothing() if aside is None else added(nothing(), aside)
    for message in messages:
        if isinstance(message, AIMessage):
            total = added(total, _usage(message))
    return total


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> Usage:
    """Two totals as one. Tokens without a word about their cost have an unknown one."""
    costs = [_cost(one), _cost(other)]
    return _made(
        {name: one.get(name, 0) + other.get(name, 0) for name in _COUNTS},
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        known=one.get("known_cost", 0.0) + other.get("known_cost", 0.0),
        estimated=bool(one.get("estimated") or other.get("estimated")),
    )


def cost_of(message: AnyMessage) -> float | None:
    """What an answer has cost in US dollars: what its provider reports as `cost` in the usage, or
    beside it in the raw usage (OpenRouter), else what the table of prices said when it came.
    """
    if not isinstance(message, AIMessage):
        return None
    metadata = message.response_metadata
    costs = metadata.get(COSTS)
    if isinstance(costs, list) and costs:
        return _amount(costs[-1])
    for usage in (message.usage_metadata, metadata.get("usage"), metadata.get("token_usage")):
        if isinstance(usage, dict) and (cost := _amount(usage.get("cost"))) is not None:
            return cost
    return _amount(metadata.get(COST))


def _usage(message: AIMessage) -> Usage:
    """What one answer has used. One that failed and reports nothing has cost nothing."""
    usage: Any = message.usage_metadata or {}
    cost = cost_of(message)
    given, made = (usage.get(f"{name}_token_details") or {} for name in ("input", "output"))
    failed = message.response_metadata.get("stop_reason") in ("error", "aborted")
    return _made(
        {
            **{name: usage.get(name, 0) for name in _COUNTS[:3]},
            "cached_tokens": _detail(given, "cache_read"),
            "cache_write_tokens": _detail(given, "cache_creation")
            + _detail(given, "ephemeral_5m_input_tokens")
            + _detail(given, "ephemeral_1h_input_tokens"),
            "reasoning_tokens": _detail(made, "reasoning"),
        },
        cost=0.0 if cost is None and failed and not usage else cost,
        known=cost or 0.0,
        estimated=bool(message.response_metadata.get(ESTIMATED)),
    )


def _made(counts: Mapping[str, int], *, cost: float | None, known: float, estimated: bool) -> Usage:
    made: Any = {**counts, "cost": cost, "known_cost": known, "estimated": estimated}
    total: Usage = made
    return total


def _cost(usage: Mapping[str, Any]) -> float | None:
    cost: float | None = usage.get("cost", None if usage.get("total_tokens") else 0.0)
    return cost


def _detail(details: Mapping[str, Any], name: str) -> int:
    value = details.get(name)
    return value if isinstance(value, int) else 0


def _amount(value: Any) -> float | None:
    """A finite number of at least 0; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value) if value >= 0 else None
