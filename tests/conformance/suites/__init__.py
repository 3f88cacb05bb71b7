"""The suites of vectors that can be run, by the name of their file."""

from tests.conformance.running import Driver
from tests.conformance.suites import (
    api_messages,
    argument_dispatch,
    loop000_options,
    loop000_runs,
    repair,
    tool_argument_bounds,
    transcript_validation,
)

SUITES: dict[str, Driver] = {
    "api_messages": api_messages.drive,
    "argument_dispatch": argument_dispatch.drive,
    "loop000_options": loop000_options.drive,
    "loop000_runs": loop000_runs.drive,
    "repair": repair.drive,
    "tool_argument_bounds": tool_argument_bounds.drive,
    "transcript_validation": transcript_validation.drive,
}
