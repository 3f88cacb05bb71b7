"""The suites of vectors that can be run, by the name of their file."""

from tests.conformance.running import Driver
from tests.conformance.suites import api_messages, repair

SUITES: dict[str, Driver] = {
    "api_messages": api_messages.drive,
    "repair": repair.drive,
}
