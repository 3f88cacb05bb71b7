"""Runs as trees of short texts: a run, its turns, and in each its requests and tool calls.

Where they are printed is `cli.trace`'s; a run of which only the transcript is left is in `stored`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from loopwright.telemetry.lines import Line
from loopwright.telemetry.reading import RecordedRun, RecordedTrace

_SHOWN = 60
"""Characters of arguments and results that are shown."""

_SMALL = {
    "compaction": "compaction from {tokens_before} to {tokens_after} tokens",
    "retry": "retry {attempt} after {wait} s: {reason}",
    "abort": "cancelled: {reason}",
    "queue_update": "{delivered} delivered from the {queue} queue",
    "repair": "the stored transcript was repaired",
    "approval": "a person is asked",
}
"""What is said of a moment; others are told by their name."""


@dataclass
class Branch:
    """A text and what belongs below it."""

    text: str
    below: list["Branch"] = field(default_factory=list)


def branches(run: RecordedRun) -> Branch:
    """The tree of a recorded run."""
    top = Branch(_run_text(run))
    place = top
    for line in run.lines:
        if line["type"] == "turn":
            place = Branch(f"turn {line.get('turn')}")
            top.below.append(place)
        elif line["type"] not in ("run", "end"):
            place.below.append(Branch(step_text(line)))
    return top


def note(trace: RecordedTrace) -> str:
    """What is missing in a trace."""
    lost = [f"{trace.lost} lines are missing or broken"] if trace.lost else []
    full = ["the file had reached its size: later steps are missing"] if trace.full else []
    return "; ".join([*lost, *full])


def _run_text(run: RecordedRun) -> str:
    end, began = run.end or {}, run.lines[0]["at"]
    when = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M:%S")
    parts = [f"run {run.run[:8]} of thread {run.thread}", when, ending_text(end)]
    if end:
        parts += [f"{end.get('turns', 0)} turns", f"{end['seconds']:.2f} s" if end else ""]
    parts += [usage_text(end.get("usage")), cost_text(end.get("cost"))]
    if end.get("error"):
        parts.append(short(end["error"].get("message")))
    return "  ".join(part for part in parts if part)


def ending_text(end: Mapping[str, Any]) -> str:
    """Status, and the rule that ended the run."""
    return f"{end['status']} ({end['reason']})" if end.get("status") else "did not end"


def usage_text(usage: Any) -> str:
    """Tokens, empty if none were counted."""
    if not isinstance(usage, dict) or not usage.get("total_tokens"):
        return ""
    parts = f"{usage.get('input_tokens', 0)} in, {usage.get('output_tokens', 0)} out"
    return f"{usage['total_tokens']} tokens ({parts})"


def cost_text(cost: Any) -> str:
    """What was paid, in the unit of the provider; empty if it is not known."""
    return f"cost {cost:.6g}" if isinstance(cost, int | float) and cost else ""


def call_text(name: Any, arguments: Any) -> str:
    """A tool call."""
    return f"tool {name} {short(arguments)}"


def step_text(line: Line) -> str:
    """A step below a turn, on one line."""
    seconds = f"{line['seconds']:.2f} s" if "seconds" in line else ""
    match line["type"]:
        case "model":
            name = f"model {line.get('model')}"
            name += " for a summary" if line.get("purpose") == "summary" else ""
            error = line.get("error") or {}
            failed = f"failed: {short(error.get('message'))}" if error else line.get("stop", "")
            usage, cost = usage_text(line.get("usage")), cost_text(line.get("cost"))
            parts = [name, failed, seconds, usage, cost]
        case "tool":
            result = "no result" if "content" not in line else short(line["content"])
            word = "error" if line.get("is_error") else "ok" if "content" in line else ""
            parts = [call_text(line.get("name"), line.get("arguments")), word, seconds, result]
        case "message":
            row = line.get("message") or {}
            data = row.get("data") or {}
            parts = [f"message {row.get('type')}", short(data.get("content"))]
        case other:
            parts = [_SMALL.get(other, str(other)).format_map(_Known(line))]
    return "  ".join(part for part in parts if part)


class _Known(dict[str, Any]):
    """Fields of a line; what is missing is a question mark."""

    def __missing__(self, name: str) -> str:
        return "?"


def short(value: Any) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 3]}..."


def texts(branch: Branch) -> Sequence[str]:
    """All texts of a tree, from above."""
    return [branch.text, *(text for below in branch.below for text in texts(below))]
