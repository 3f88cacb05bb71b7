"""The kinds of report cases that can be run, by the name that the cases give."""

from tests.conformance.kinds import cancel, dup_id, loop, recursion, steering, transcript
from tests.conformance.running import Driver

KINDS: dict[str, Driver] = {
    "cancel": cancel.drive,
    "dup-id": dup_id.drive,
    "loop": loop.drive,
    "recursion": recursion.drive,
    "steering": steering.drive,
    "transcript": transcript.drive,
}
