"""The kinds of report cases that can be run, by the name that the cases give."""

from tests.conformance.kinds import (
    arguments,
    cancel,
    checkpoint,
    dup_id,
    ending,
    loop,
    recursion,
    resume,
    steering,
    stream_delta,
    transcript,
)
from tests.conformance.running import Driver

KINDS: dict[str, Driver] = {
    "arguments": arguments.drive,
    "cancel": cancel.drive,
    "checkpoint": checkpoint.drive,
    "dup-id": dup_id.drive,
    "empty": ending.drive_replies,
    "finish-reason": ending.drive_stream,
    "length": ending.drive_stream,
    "loop": loop.drive,
    "recursion": recursion.drive,
    "resume": resume.drive,
    "sse-bytes": stream_delta.drive,
    "steering": steering.drive,
    "stream-delta": stream_delta.drive,
    "transcript": transcript.drive,
    "usage": stream_delta.drive,
}
