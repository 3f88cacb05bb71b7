"""Kind `transcript`: a stored transcript with a fault, loaded by the next run, twice.

What the keys of `expect` mean stands in `checks`.
"""

from collections.abc import Sequence
from copy import deepcopy

from tests.conformance.checks import TRANSCRIPT, Outcome, unmet
from tests.conformance.loading import load
from tests.conformance.running import Case, unknown_keys
from tests.conformance.short_messages import message


async def drive(case: Case) -> Sequence[str]:
    """Load the transcript as one of a died run, and look at what came of it."""
    unknown = unknown_keys("input", case.input, ["messages"])
    if unknown:
        return unknown
    stored = [message(row) for row in case.input["messages"]]
    before = deepcopy(stored)
    loaded = await load(stored)
    outcome = Outcome(before, loaded, await load(loaded.messages))
    return unmet(case.expect, outcome, TRANSCRIPT)
