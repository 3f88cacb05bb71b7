"""Kind `steering`: a script of prompts, queued messages, calls and kills, played on one thread.

Its words stand in `scenarios.words`, the keys of its `expect` in `scenarios.checking`.
"""

from collections.abc import Sequence

from tests.conformance.checks import unmet
from tests.conformance.running import Case, unknown_keys
from tests.conformance.scenarios.checking import checks_of
from tests.conformance.scenarios.outcome import run
from tests.conformance.scenarios.playing import StuckError
from tests.conformance.scenarios.words import UnknownWordError, policies, steps

SCRIPTS = ("events", "steps", "scenario")
"""The names under which a case may give its script."""


async def drive(case: Case) -> Sequence[str]:
    """Play the script, prompt the thread once more, and look at what came of both."""
    unknown = unknown_keys("input", case.input, [*SCRIPTS, "policy", "mode"])
    if unknown:
        return unknown
    words = [word for key in SCRIPTS for word in case.input.get(key, [])]
    try:
        settings = policies(case.input.get("policy"), case.input.get("mode"))
        outcome = await run(steps(words), settings)
    except (UnknownWordError, StuckError) as error:
        return [str(error)]
    return unmet(case.expect, outcome, checks_of(outcome))
