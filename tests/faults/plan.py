"""Which faults a server has in store for a run, and what the run must come to.

How a fault looks on the wire is here; what is checked of a run is in `trial`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from loopwright.testing import Drop, HttpReply, Pause, Response, SseReply
from loopwright.testing.server import RawReply, Reply

Effect = Literal["again", "compact", "fatal", "answer", "tools", "broken"]
"""What must follow: the same request again, a smaller one, the end, or a step of the work."""


@dataclass(frozen=True)
class Fault:
    """One reply. `waits` are the bounds of the wait behind it; `text` is what must never count."""

    name: str
    effect: Effect
    reply: Reply
    kind: str = ""
    waits: tuple[float, float] | None = None


def _status(random: Random, status: int, kind: str) -> Fault:
    return Fault(str(status), "again", HttpReply(status=status), kind)


def _told(random: Random) -> Fault:
    """A rate limit that names its wait, in one of the forms in use."""
    seconds = random.choice([0, 1, 2.5, 7, 45, 171, 600])
    forms: list[tuple[dict[str, str], Any]] = [
        ({"Retry-After": f"{seconds}"}, ""),
        ({"retry-after-ms": f"{seconds * 1000:g}", "retry-after": "999"}, ""),
        ({}, {"error": {"message": f"Rate limited. Please try again in {seconds}s."}}),
        ({}, {"error": {"message": "slow down", "details": [{"retryDelay": f"{seconds}s"}]}}),
        ({}, {"error": {"message": "slow down", "resets_in_seconds": seconds}}),
    ]
    headers, body = random.choice(forms)
    reply = HttpReply(status=429, headers=headers, body=body)
    return Fault("429 with a wait", "again", reply, "rate_limit", (seconds, seconds))


def _too_long(random: Random) -> Fault:
    reply = HttpReply(status=429, headers={"Retry-After": f"{random.randint(601, 90_000)}"})
    return Fault("429 for too long", "fatal", reply, "rate_limit")


def _refused(random: Random) -> Fault:
    status, code, kind = random.choice(
        [
            (400, "invalid_value", "bad_request"),
            (401, "invalid_api_key", "auth"),
            (403, "", "auth"),
            (402, "", "billing"),
            (404, "model_not_found", "bad_request"),
            (429, "insufficient_quota", "billing"),
            (400, "content_filter", "content_policy"),
        ]
    )
    body = {"error": {"message": "no", "code": code or None}}
    return Fault(f"{status} {code}".strip(), "fatal", HttpReply(status=status, body=body), kind)


def _overflow(random: Random) -> Fault:
    message = random.choice(["prompt is too long: 9 tokens > 8", "maximum context length is 8"])
    reply = HttpReply(status=random.choice([400, 413, 503]), body={"error": {"message": message}})
    return Fault("overflow", "compact", reply, "context_overflow")


def _pieces(random: Random) -> list[dict[str, Any]]:
    """The first part of an answer: some text, and perhaps a whole or half call."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"VOID {number} "} for number in range(random.randint(0, 3))]
    if random.random() < 0.5:
        text = random.choice(['{"n": 666}', '{"n": 66', ""])
        function = {"name": "step", "arguments": text}
        call = {"index": 0, "id": "void", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    return [_chunk(delta) for delta in deltas]


def _chunk(delta: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def _cut(random: Random) -> Fault:
    """A stream that ends in the middle: quietly, with a reset, or as if it were whole."""
    end = random.choice(["reset", "quiet", "eof", "done"])
    drop = [Drop(reset=end == "reset")] if end in ("reset", "quiet") else []
    reply = SseReply(events=[*_pieces(random), *drop], done=end == "done")
    return Fault(f"cut ({end})", "again", reply)


def _garbage(random: Random) -> Fault:
    line = random.choice(['data: {"choices": [{"del\n\n', "data: <html>\n\n", "data: \x00\x01\n\n"])
    return Fault("garbage", "again", RawReply(writes=[line.encode()]))


def _event(random: Random) -> Fault:
    """An error event behind the first pieces of a stream."""
    type, effect, kind = random.choice(
        [
            ("overloaded_error", "again", "overloaded"),
            ("rate_limit_error", "again", "rate_limit"),
            ("server_error", "again", "server_error"),
            ("invalid_api_key", "fatal", "auth"),
        ]
    )
    events = [*_pieces(random), {"error": {"message": "it broke", "type": type}}]
    return Fault(f"event {type}", effect, SseReply(events=events, done=False), kind)  # type: ignore[arg-type]


def _stalled(random: Random) -> Fault:
    reply = SseReply(events=[*_pieces(random), Pause(1)])
    return Fault("stall", "again", reply, "timeout")


def _reset(random: Random) -> Fault:
    return Fault("reset", "again", RawReply(writes=[Drop()]))


FAULTS: Sequence[Callable[[Random], Fault]] = (
    *(
        (lambda random, s=status, k=kind: _status(random, s, k))
        for status, kind in ((500, "server_error"), (502, "server_error"), (503, "overloaded"))
    ),
    lambda random: _status(random, 529, "overloaded"),
    lambda random: _status(random, 408, "timeout"),
    lambda random: _status(random, 429, "rate_limit"),
    _told,
    _told,
    _cut,
    _cut,
    _cut,
    _garbage,
    _event,
    _event,
    _reset,
    _stalled,
    _overflow,
)
LASTING: Sequence[Callable[[Random], Fault]] = (_refused, _too_long)


def _broken_call(random: Random, number: int) -> Fault:
    text = random.choice(['{"n": 66', "[1]", '{"n": }', "null x"])
    reply = Response(calls=[(f"bad{number}", "step", text)])
    return Fault("broken call", "broken", reply)


@dataclass
class Plan:
    """The replies of a server to one run, in order. They end where the run must end."""

    faults: list[Fault] = field(default_factory=list)
    retries: int = 3

    @classmethod
    def of(cls, random: Random) -> "Plan":
        """Some steps of work with faults before each, then the answer; or a failure for good."""
        plan = cls()
        steps = random.randint(0, 3)
        for number in range(steps + 1):
            if plan._stumble(random):
                return plan
            if number == steps:
                plan.faults.append(Fault("answer", "answer", Response(text="ALL DONE")))
            elif random.random() < 0.2:
                plan.faults.append(_broken_call(random, number))
            else:
                call = (f"call{number}", "step", {"n": number})
                plan.faults.append(Fault("call", "tools", Response(calls=[call])))
        return plan

    def _stumble(self, random: Random) -> bool:
        """Faults before a step; whether one of them, or their number, ends the run."""
        again, overflowed = 0, False
        while random.random() < 0.45:
            lasting = random.random() < 0.06
            fault = random.choice(LASTING if lasting else FAULTS)(random)
            self.faults.append(fault)
            if fault.effect == "compact":
                if overflowed:
                    return True
                overflowed = True
            elif fault.effect == "fatal":
                return True
            else:
                again += 1
                if again > self.retries:
                    return True
        return False
