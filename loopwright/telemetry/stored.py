"""The runs of a thread as its transcript and its past tell them: turns, calls, usage.

No times of steps and no rules of runs whose last moment was pruned; a trace knows more.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.spending import cost_of, usage_of
from loopwright.state.messages import calls, stop_reason
from loopwright.state.moments import Moment
from loopwright.stored import StoredThreads
from loopwright.telemetry.tree import (
    Branch,
    call_text,
    cost_text,
    ending_text,
    short,
    usage_text,
)


def stored_runs(agent: StoredThreads, thread: str) -> list[Branch]:
    """A tree for each run, as far as the past is kept; what came before is one more.

    Raises UnknownThreadError.
    """
    messages = agent.messages(thread)
    begun, found = 0, []
    for moment in _last_moments(agent.history(thread)):
        end = _outcome(agent, thread, moment)
        found.append(_tree(moment, end, messages[begun : moment.messages]))
        begun = moment.messages
    return found


def _last_moments(history: Sequence[Moment]) -> list[Moment]:
    """The newest moment of each run, oldest run first; what was rewound is left out."""
    last: dict[str, Moment] = {}
    size = history[0].messages + 1
    for moment in history:
        if moment.run is not None and moment.run not in last and moment.messages < size:
            last[moment.run] = moment
            size = moment.messages
    return list(reversed(last.values()))


def _outcome(agent: StoredThreads, thread: str, moment: Moment) -> dict[str, Any]:
    """The outcome that was stored with a run's last moment; empty if it had none."""
    if moment.decision != "done":
        return {}
    values = agent.graph.get_state(
        {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": moment.id}}
    ).values
    result: dict[str, Any] = values.get("result") or {}
    return result if result.get("run_id") == moment.run else {}


def _tree(moment: Moment, end: dict[str, Any], messages: Sequence[AnyMessage]) -> Branch:
    parts = [f"run {str(moment.run)[:8]}", moment.time[:19].replace("T", " "), ending_text(end)]
    usage = usage_of(messages)
    parts += [f"{moment.turn} turns", usage_text(usage), cost_text(usage["cost"])]
    top = Branch("  ".join(part for part in parts if part))
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    place, turn = top, 0
    for message in messages:
        if isinstance(message, AIMessage):
            turn += 1
            place = Branch(f"turn {turn}", _answer(message, results))
            top.below.append(place)
        elif not isinstance(message, ToolMessage):
            place.below.append(Branch(f"message {message.type}  {short(message.text)}"))
    return top


def _answer(message: AIMessage, results: dict[str, ToolMessage]) -> list[Branch]:
    name = message.response_metadata.get("model", "")
    parts = [f"model {name}", stop_reason(message), usage_text(message.usage_metadata)]
    parts.append(cost_text(cost_of(message)))
    found = [Branch("  ".join(part for part in parts if part))]
    for call in calls(message):
        result = results.get(call.id)
        word = "no result" if result is None else "error" if result.status == "error" else "ok"
        text = "" if result is None else f"  {short(result.text)}"
        found.append(Branch(f"{call_text(call.name, call.arguments)}  {word}{text}"))
    return found
