"""Kind `resume`: a run that was stopped or killed goes on, and its tools do not run again.

A script of steps is played like any other; a batch with a crash is in `storage.crashing`.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.kinds import steering
from tests.conformance.running import Case, unknown_keys
from tests.conformance.storage.crashing import crashed_inside
from tests.conformance.storage.facts import reasons


async def drive(case: Case) -> Sequence[str]:
    """Play the steps, or crash inside one of the tools and resume."""
    if "batch" not in case.input:
        return await steering.drive(case)
    if unknown := unknown_keys("input", case.input, ["batch", "crash_in"]):
        return unknown
    with TemporaryDirectory() as folder:
        return reasons(case.expect, await crashed_inside(Path(folder), case.input))
