"""Kind `overflow`: a request that does not fit the model's context, in the words of its server."""

from collections.abc import Sequence

from tests.conformance.checks import unmet
from tests.conformance.failing import FAILURE
from tests.conformance.kinds.retry import failing
from tests.conformance.running import Case, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """Let the first request fail so; a smaller one is answered."""
    unknown = unknown_keys("input", case.input, ["status", "headers", "body"])
    return unknown or unmet(case.expect, await failing(case.input), FAILURE)
