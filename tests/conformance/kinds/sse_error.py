"""Kind `sse-error`: an error that a server sends within a stream that began well (status 200)."""

from collections.abc import Sequence

from tests.conformance.kinds import stream_end
from tests.conformance.running import Case


async def drive(case: Case) -> Sequence[str]:
    """It is a stream like any other, which does not end well."""
    return await stream_end.drive(case)
