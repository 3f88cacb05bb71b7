"""Whether the calls of a run go round in circles: a fold over its messages, and what it finds.

Pure; what a run does about it is in `watching`.
"""

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.settings import RepetitionPolicy
from loopwright.state.messages import Call, calls

Circle = Literal["same_call", "cycle", "same_error", "no_progress", "long_run"]

LONGEST_CYCLE = 4
"""Calls of the longest cycle that is looked for."""

ROUNDS = (3, 4)
"""Times that a call, or a cycle of calls, may come with unchanged results: then it is warned of;
then the call that would begin the next round is not executed."""

FAILURES = (4, 8)
"""Failures of one tool in a row, with the same text under changing arguments."""

IDLE_TURNS = (6, 12)
"""Turns in a row in which every result was known from an earlier call of the run."""

LONG_RUN = 16
"""Calls in a row that are the same, whatever came of them: warned of, never more."""

_KEPT = LONGEST_CYCLE * ROUNDS[1]

_CLOCK = re.compile(
    r"""
      (?<!\d)\d{4}-\d{2}-\d{2}(?!\d)[T]?                  # 2026-01-31, also before a time
    | (?<!\d)\d{1,2}[/.]\d{1,2}[/.](?:\d{4}|\d{2})(?!\d)  # 31.01.2026, 1/31/26
    | (?<!\d)\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?         # 9:05, 09:05:01.25
      (?:\s?[AaPp]\.?[Mm]\b)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?
    | \b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?\b,?
    | (?:\b\d{1,2}\s)?\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?
      \s\d{1,4}\b(?:,?\s\d{4}\b)?                        # Jan 31, 2026, 31 January 2026
    | \b1[5-9]\d{8}(?:\d{3}|\.\d+)?\b                    # seconds or milliseconds since 1970
    """,
    re.VERBOSE,
)


def signature(call: Call) -> str:
    """The tool's name and the arguments as canonical JSON: the order of keys and the white space of
    the model's text do not count. Arguments that are no JSON stand as they are.
    """
    return f"{call.name}:{_canonical(call.arguments)}"


def _canonical(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)


def timeless(text: str) -> str:
    """The text without the clock times and dates in it."""
    return _CLOCK.sub("<time>", text)


@dataclass(frozen=True)
class Warned:
    """A circle that has been noticed: `names` are the tools in it, `count` how often it went."""

    circle: Circle
    names: tuple[str, ...]
    count: int


class _Answered:
    """A call with its result. The result is read only when the call comes again."""

    def __init__(self, call: Call, result: ToolMessage) -> None:
        self.signature = signature(call)
        self.name = call.name
        self.is_error = result.status == "error"
        self._content = result.content

    @cached_property
    def fingerprint(self) -> tuple[bool, int]:
        """Equal for results that say the same at another time."""
        content = self._content
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        return self.is_error, hash(timeless(text))

    def is_like(self, other: "_Answered") -> bool:
        """Whether both are the same call with the same result."""
        return self.signature == other.signature and self.fingerprint == other.fingerprint

    def fails_like(self, other: "_Answered") -> bool:
        """Whether both are failures of one tool with the same text."""
        both = self.is_error and other.is_error and self.name == other.name
        return both and self.fingerprint == other.fingerprint


class CallHistory:
    """The calls of a run and their results, taken message by message: O(new messages).

    Policy `first_repeat` refuses a call that the run has made before, and what stands behind it in
    its message. `graded` warns first: once for each repetition, until it was left and began again;
    then it refuses what would go on with it. Tools that `is_exempt` names are left out.
    """

    def __init__(self, policy: RepetitionPolicy, is_exempt: Callable[[str], bool]) -> None:
        self._policy = policy
        self._is_exempt = is_exempt
        self._asked: set[str] = set()
        self._again: set[str] = set()
        self._refused = False
        self._open: dict[str, Call] = {}
        self._answered: deque[_Answered] = deque(maxlen=_KEPT)
        self._first: dict[str, _Answered] = {}
        self._known: dict[str, set[tuple[bool, int]]] = {}
        self._is_new = False
        self._idle_turns = self._same = self._failures = 0
        self._in_circle = False
        self.warned: Warned | None = None
        """What the last turn was warned of."""

    def take(self, message: AnyMessage) -> None:
        """Follow the next message of the run."""
        if isinstance(message, AIMessage):
            self._ask(message)
        elif isinstance(message, ToolMessage):
            self._answer(message)

    def refuses(self, call: Call) -> bool:
        """Whether the call must not be executed. Asked in the order of the calls; what has been
        answered before it was taken.
        """
        if not self._refused and not self._is_exempt(call.name):
            graded = self._policy == "graded"
            self._refused = self._goes_on(call) if graded else call.id in self._again
        return self._refused

    def needs_order(self, batch: Sequence[Call]) -> bool:
        """Whether the results of earlier calls of a batch decide if later ones may be executed."""
        if self._policy != "graded" or len(batch) < 2:
            return False
        made = Counter(signature(call) for call in batch if not self._is_exempt(call.name))
        before = Counter(answered.signature for answered in self._answered)
        return any(n > 1 and n + before[name] > ROUNDS[1] for name, n in made.items())

    # ---- following

    def _ask(self, message: AIMessage) -> None:
        self.warned, self._refused, self._is_new = None, False, False
        self._open = {c.id: c for c in calls(message) if not self._is_exempt(c.name)}
        if self._policy != "first_repeat":
            return
        for call in self._open.values():
            name = signature(call)
            if name in self._asked:
                self._again.add(call.id)
            self._asked.add(name)

    def _answer(self, result: ToolMessage) -> None:
        call = self._open.pop(result.tool_call_id, None)
        if call is None or self._policy != "graded":
            return
        answered = _Answered(call, result)
        last = self._answered[-1] if self._answered else None
        same = last is not None and last.signature == answered.signature
        failed = last is not None and answered.fails_like(last)
        self._same = self._same + 1 if same else 1
        self._failures = self._failures + 1 if failed else int(answered.is_error)
        self._is_new |= not self._knows(answered)
        self._answered.append(answered)
        if not self._open:
            self._idle_turns = 0 if self._is_new else self._idle_turns + 1
        circle = self._circle()
        if circle is not None and not self._in_circle:
            self.warned = circle
        self._in_circle = circle is not None

    def _knows(self, answered: _Answered) -> bool:
        """Whether this call has had this result before."""
        first = self._first.setdefault(answered.signature, answered)
        if first is answered:
            return False
        known = self._known.setdefault(answered.signature, {first.fingerprint})
        is_known = answered.fingerprint in known
        known.add(answered.fingerprint)
        return is_known

    # ---- what is found

    def _circle(self) -> Warned | None:
        """The circle that the run is in, if it has gone round often enough to be warned of."""
        for length in range(1, LONGEST_CYCLE + 1):
            if self._rounds(length, ROUNDS[0]):
                names = tuple(a.name for a in self._tail(length))
                return Warned("same_call" if length == 1 else "cycle", names, ROUNDS[0])
        name = (self._answered[-1].name,)
        if self._failures >= FAILURES[0]:
            return Warned("same_error", name, self._failures)
        if self._same >= LONG_RUN:
            return Warned("long_run", name, self._same)
        if self._idle_turns >= IDLE_TURNS[0]:
            return Warned("no_progress", name, self._idle_turns)
        return None

    def _goes_on(self, call: Call) -> bool:
        """Whether the call would go on with a circle that was warned of long enough ago."""
        made = signature(call)
        for length in range(1, LONGEST_CYCLE + 1):
            if self._rounds(length, ROUNDS[1]) and self._answered[-length].signature == made:
                return True
        if self._failures >= FAILURES[1] and self._answered[-1].name == call.name:
            return True
        return self._idle_turns >= IDLE_TURNS[1] and made in self._first

    def _tail(self, count: int) -> list[_Answered]:
        return list(self._answered)[-count:]

    def _rounds(self, length: int, times: int) -> bool:
        """Whether the last calls are so many rounds of a cycle of this length."""
        answered, size = self._answered, len(self._answered)
        if size < length * times:
            return False
        return all(
            answered[-at].is_like(answered[-at - length])
            for at in range(1, length * (times - 1) + 1)
        )
