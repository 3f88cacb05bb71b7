"""The words of a script, and what they mean: each becomes one or more steps.

How a step is taken is `playing`'s.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from loopwright.settings import Settings


class UnknownWordError(Exception):
    """A script or a policy says something that nothing here knows."""


@dataclass(frozen=True)
class Step:
    """One step of a script, and what it is about."""

    kind: str
    text: str = ""


KILL = Step("kill")
TASK = "task"
"""The prompt of scripts that name none."""


def _one(kind: str) -> Callable[[str, int], list[Step]]:
    return lambda text, at: [Step(kind, text.strip())]


def _under_way(*more: Step) -> Callable[[str, int], list[Step]]:
    """A run that is in its tool, whatever is to come behind."""
    return lambda text, at: [Step("begin"), Step("call", f"c{at + 1}"), *more]


def _half(text: str, at: int) -> list[Step]:
    """A run whose model has said half of something; a call's id is its place in the script."""
    is_call = text.startswith(("argument", "call", "tool"))
    return [Step("begin"), Step("half_call", f"c{at + 1}") if is_call else Step("half_text")]


_LACKING = [Step("needs", "sub-agents and a shell tool")]

_WORDS: list[tuple[str, Callable[[str, int], list[Step]]]] = [
    (r"user:(.*)", _one("user")),
    (r"steer:(.*)", _one("steer")),
    (r"(?:follow[-_]?up|queue):(.*)", _one("follow_up")),
    (r"model:call ([^:]+)", _one("call")),
    (r"model(?::final(?:[: ](.*))?)?", _one("final")),
    (r"tools_start(?:[: ](.*))?", _one("tools_start")),
    (r"tools_end(?:[: ](.*))?", _one("tools_end")),
    (r"drain", _one("drain")),
    (r"cancel|abort|stop", _one("abort")),
    (r"continue", _one("continue")),
    (r"resume", _one("resume")),
    (r"kill(?: -9)?", _one("kill")),
    (r"idle|run_end", _one("idle")),
    (r"max_turns:(\d+)", _one("max_turns")),
    (r"run|(?:the )?tool (?:runs|starts)", _under_way()),
    (r"(?:the )?tool (?:ran|ends)", _under_way(Step("tools_end"), Step("drain"))),
    (r"stream half of the (.*)", _half),
    (r"(?:the )?final text starts", lambda text, at: _half("text", at)),
    (r"astream, take (\d+) events?, (?:close|leave)", _one("graph_stream")),
    (r"(?:Agent\.)?stream, take (\d+) events?, (?:close|leave)", _one("agent_stream")),
    (r"(?:the )?sub-?agent (?:runs|starts) .*", lambda text, at: _LACKING),
]
"""What may be said, as a whole word each; the first that fits counts."""


def steps(script: Iterable[str]) -> list[Step]:
    """The steps of a script. Raises UnknownWordError for a word that nothing here knows."""
    return [step for at, word in enumerate(script) for step in _steps(word, at)]


def _steps(word: str, at: int) -> list[Step]:
    for pattern, meaning in _WORDS:
        if match := re.fullmatch(pattern, word.strip(), re.DOTALL):
            return meaning((*match.groups(), "")[0] or "", at)
    raise UnknownWordError(f"unknown step {word!r}")


def parts(script: list[Step]) -> list[list[Step]]:
    """The steps between the kills: each part is one process's."""
    found: list[list[Step]] = [[]]
    for step in script:
        if step.kind == KILL.kind:
            found.append([])
        else:
            found[-1].append(step)
    return found


_MODES = {
    "parallel": {"tool_execution": "parallel"},
    "sequential": {"tool_execution": "sequential"},
    "all": {"steering_mode": "all", "follow_up_mode": "all"},
    "one-at-a-time": {},
}


def policies(*said: str | None) -> dict[str, Any]:
    """The settings that the `policy` and `mode` of a case name, as JSON.

    Raises UnknownWordError for one that the runtime does not have.
    """
    found: dict[str, Any] = {}
    for part in (part.strip() for text in said if text for part in re.split("[,;]", text)):
        name, given, value = part.partition("=")
        if given and name == "max_turns":
            found["limits"] = {"turns": _value(value)}
        elif given and name in {field.name for field in fields(Settings)}:
            found[name] = _value(value)
        elif part.replace("_", "-") in _MODES:
            found |= _MODES[part.replace("_", "-")]
        elif part != "default":
            raise UnknownWordError(f"unknown policy {part!r}")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.replace("-", "_")
