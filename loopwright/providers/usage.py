"""Token counts of one answer from the counts in its chunks.

Sums over requests and runs are made by the nodes.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

from loopwright.validation import LARGEST_WHOLE


def merged(before: UsageMetadata | None, new: UsageMetadata) -> UsageMetadata:
    """The counts after one more report.

    Most servers repeat running totals, so the largest of each count is taken and nothing is
    summed. Some (Google, Anthropic) report the input once and increments of the output after it:
    those have no input, and are added.
    """
    if before is None:
        return new
    adds = before["input_tokens"] > 0 and new["input_tokens"] == 0
    counts: UsageMetadata = _merged(before, new, adds)
    return counts


def _merged(before: Any, new: Any, adds: bool) -> Any:
    if isinstance(before, dict) and isinstance(new, dict):
        return {
            key: _merged(before.get(key), new.get(key), adds)
            for key in (*before, *(key for key in new if key not in before))
        }
    if before is None or new is None:
        return new if before is None else before
    return before + new if adds else max(before, new)


def of_completions(counts: Mapping[str, Any]) -> UsageMetadata:
    """langchain's counts from those of chat completions; what is no count is taken for none.

    A total that is smaller than its parts is replaced by their sum.
    """
    read, written = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    usage = UsageMetadata(
        input_tokens=read,
        output_tokens=written,
        total_tokens=max(_count(counts.get("total_tokens")), read + written),
    )
    into, out = counts.get("prompt_tokens_details"), counts.get("completion_tokens_details")
    cached = _detail(into, "cached_tokens") or _count(counts.get("prompt_cache_hit_tokens"))
    details = {"cache_read": cached, "cache_creation": _detail(into, "cache_write_tokens")}
    details |= {"audio": _detail(into, "audio_tokens")}
    made = {"reasoning": _detail(out, "reasoning_tokens"), "audio": _detail(out, "audio_tokens")}
    usage["input_token_details"] = InputTokenDetails(**_given(details))  # type: ignore[typeddict-item]
    usage["output_token_details"] = OutputTokenDetails(**_given(made))  # type: ignore[typeddict-item]
    return usage


def _given(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _detail(details: Any, name: str) -> int:
    return _count(details.get(name)) if isinstance(details, Mapping) else 0


def _count(value: Any) -> int:
    """A whole number of tokens from what a server says: a text or a float may spell one."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, LARGEST_WHOLE) if is_count else 0
