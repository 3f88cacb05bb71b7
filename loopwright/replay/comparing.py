"""Two lists of steps side by side: the first one that differs, and in what.

Ids, times and places are not compared; everything that a run did is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from loopwright.replay.feed import is_replayed
from loopwright.telemetry.lines import Line

_OWN = frozenset(
    "step run thread at seconds first_piece resumed_from after details cut cost call waiting "
    "wait message_id format limits history started plan tree".split()
)
"""Fields that belong to one run or one machine, or tell how it was recorded."""

_BEGINNING = ("settings", "wording", "argument_rules", "hooks", "system_prompt", "tools")
"""Fields of a first line: what is replayed with, not what came of it."""

_IDS = frozenset(("id", "tool_call_id", "call_id"))

_SHOWN = 60
"""Characters of a value that are shown of a difference."""


@dataclass(frozen=True)
class Difference:
    """The first step that differs: its number in the recorded run, or behind its last one.

    `line` is its place in the file; `field` is the path of what differs, empty if the steps are not
    of one type; `recorded` and `now` are shown shortened, empty where there is no such step.
    """

    step: int
    line: int
    field: str
    recorded: str
    now: str

    def __str__(self) -> str:
        what = f" {self.field}:" if self.field else ":"
        where = f"step {self.step} (line {self.line})"
        return f"{where}{what} recorded {self.recorded or 'nothing'}, now {self.now or 'nothing'}"


def out_of_order(recorded: Sequence[Line], places: Sequence[int]) -> Difference | None:
    """The first line of a run whose number is not the next one: lines are missing or moved."""
    for expected, (line, place) in enumerate(zip(recorded, places, strict=True)):
        if line["step"] != expected:
            number = str(line["step"])
            return Difference(expected, place, "order", f"step {number}", f"step {expected}")
    return None


def first_difference(
    recorded: Sequence[Line],
    places: Sequence[int],
    played: Sequence[Line],
    *,
    requests: bool,
    whole: bool,
) -> Difference | None:
    """Where the played steps are not the recorded ones; None if they are.

    `requests` says whether what was sent to models can be compared, `whole` whether the recording
    has its end: else what was played behind it does not count.
    """
    known = len(recorded) if whole else _behind_last_answer(recorded)
    pairs = zip(recorded[:known], places, strict=False)
    steps = [(line, at) for line, at in pairs if is_replayed(line)]
    now = [line for line in played if is_replayed(line)]
    left_out = _OWN | (frozenset() if requests else {"request", "produced"})
    answer_was_cut = False
    for pair, mine in zip_longest(steps, now):
        if pair is None:
            place, step = places[-1], len(recorded)
            return Difference(step, place, "", "", described(mine)) if whole else None
        theirs, place = pair
        if theirs["type"] == "model":  # calls that were cut came with other arguments
            answer_was_cut = "answer" in theirs.get("cut", ())
        unsure = {"arguments"} if answer_was_cut else set()
        unsure |= {"unfinished", "error"} if theirs.get("unfinished") else set()
        found = _between(theirs, mine, left_out | unsure)
        if found is not None:
            return Difference(theirs["step"], place, *found)
    return None


def described(line: Line) -> str:
    """A step in a few words."""
    match line["type"]:
        case "turn":
            return f"turn {line.get('turn')}"
        case "tool":
            return f"tool {line.get('name')}"
        case "model":
            return f"model {line.get('model')} ({line.get('purpose')})"
        case "end":
            return f"end {line.get('status')} ({line.get('reason')})"
        case other:
            return str(other)


def _behind_last_answer(lines: Sequence[Line]) -> int:
    """How far a run without an end is known: to the last answer or result that it was given."""
    given = [at for at, line in enumerate(lines, 1) if "answer" in line or "content" in line]
    return given[-1] if given else 0


def _between(
    theirs: Line, mine: Line | None, left_out: frozenset[str]
) -> tuple[str, str, str] | None:
    """Path, recorded and played value of the first field that differs."""
    if mine is None or theirs["type"] != mine["type"]:
        return "", described(theirs), described(mine) if mine else ""
    if theirs["type"] == "run":
        left_out |= {*_BEGINNING}
    for name in [*theirs, *(name for name in mine if name not in theirs)]:
        if name in left_out:
            continue
        found = _within(_plain(theirs.get(name)), _plain(mine.get(name)), name)
        if found is not None:
            path, was, is_now = found
            return f"{described(theirs)}, {_in_words(theirs, path)}", _short(was), _short(is_now)
    return None


def _within(theirs: Any, mine: Any, path: str) -> tuple[str, Any, Any] | None:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for name in [*theirs, *(name for name in mine if name not in theirs)]:
            found = _within(theirs.get(name), mine.get(name), f"{path}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        pairs = enumerate(zip(theirs, mine, strict=True))
        return next(filter(None, (_within(a, b, f"{path}[{at}]") for at, (a, b) in pairs)), None)
    same = theirs == mine and isinstance(theirs, bool) == isinstance(mine, bool)
    return None if same else (path, theirs, mine)


def _in_words(line: Line, path: str) -> str:
    """Where a digest stands for a message, which one it is."""
    name, bracket, rest = path.partition("[")
    if not bracket or name not in ("request.new", "produced"):
        return path
    before = line["request"]["same"] if name == "request.new" else 0
    what = "sent" if before or name == "request.new" else "produced"
    return f"message {before + int(rest.rstrip(']')) + 1} of what was {what}"


def _plain(value: Any) -> Any:
    """A value without the ids of messages and calls."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if {"type", "data"} <= set(value):
        data = {name: item for name, item in value["data"].items() if name not in _IDS}
        for name in ("tool_calls", "invalid_tool_calls"):
            if isinstance(data.get(name), list):
                data[name] = [{**call, "id": None} for call in data[name]]
        return {**value, "data": data}
    if "asks" in value or ("id" in value and "value" in value):
        return {name: _plain(item) for name, item in value.items() if name not in _IDS}
    if "call_id" in value:
        return {name: item for name, item in value.items() if name not in _IDS}
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
