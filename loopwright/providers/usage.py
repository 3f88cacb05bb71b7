"""Token counts of one answer from the counts in its chunks.

Sums over requests and runs are made by the nodes.
"""

from typing import Any

from langchain_core.messages.ai import UsageMetadata


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
