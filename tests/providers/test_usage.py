"""Token counts of one answer, however often a server repeats them."""

from functools import reduce
from typing import Any

import pytest

from loopwright.providers.usage import merged


def counts(input: int, output: int, **details: int) -> Any:
    made: dict[str, Any] = {
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output,
    }
    return {**made, "input_token_details": details} if details else made


@pytest.mark.parametrize(
    "reports",
    [
        [counts(100, 3)],
        [counts(100, 1), counts(100, 2), counts(100, 3)],
        [counts(100, 3), counts(100, 3)],
        [counts(100, 0), counts(0, 3)],
        [counts(100, 1), counts(0, 1), counts(0, 1)],
        [counts(0, 0), counts(100, 3), counts(0, 0)],
    ],
)
def test_totals_are_not_summed_and_increments_are(reports: list[Any]) -> None:
    assert reduce(merged, reports, None) == counts(100, 3)


def test_running_totals_without_an_input_are_not_summed() -> None:
    assert merged(counts(0, 1), counts(0, 2)) == counts(0, 2)


def test_details_are_kept_whenever_they_come() -> None:
    found: Any = merged(counts(50, 9), counts(50, 9, cache_read=40))
    assert found["input_token_details"] == {"cache_read": 40}
    assert merged(found, counts(50, 9)) == found
