"""Kind `loop`: calls with their results, one after the other, and when a run notices a repetition.

A nudge is counted at the calls made until its turn was over, a stop at the call that was refused.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolMessage

from loopwright import Agent, Settings, Tool, ToolContext, ToolResult
from loopwright.events import AnyEvent, Repetition, ToolExecutionStart, TurnStart
from loopwright.state.messages import Call
from loopwright.testing import Response, ScriptedModel
from tests.conformance.checks import PEOPLE, Check, equal, unanswered, unmet
from tests.conformance.running import Case, unknown_keys

THREAD = "loop"
Row = list[Any]
"""`[name, arguments, result]`; the result is text, or `{"error": text}` of a tool that fails."""


@dataclass
class Outcome:
    """Where a run was nudged and stopped, by calls and by turns, both from 1."""

    nudges: list[int] = field(default_factory=list)
    nudge_turns: list[int] = field(default_factory=list)
    stop: int | None = None
    stop_turn: int | None = None
    notes: int = 0
    """Nudges that a request held."""

    status: str = ""
    open_calls: list[str] = field(default_factory=list)
    answered: int = 0


async def drive(case: Case) -> Sequence[str]:
    """Let a scripted model make the calls, until the script or the run is over."""
    unknown = unknown_keys("input", case.input, ["calls", "mode", "repeatable"])
    if unknown:
        return unknown
    turns = [_turn(item) for item in case.input["calls"]]
    return unmet(case.expect, await _run(turns, case.input), LOOP)


def _turn(item: Row) -> list[Row]:
    """The calls of one assistant message: a row by itself is one of one call."""
    rows = item if isinstance(item[0], list) else [item]
    for row in rows:
        if len(row) != 3 or not isinstance(row[0], str) or not isinstance(row[2], str | dict):
            raise ValueError(f"a call of the form {row!r}")
        if isinstance(row[2], dict) and set(row[2]) != {"error"}:
            raise ValueError(f"a result of the form {row[2]!r}")
    return rows


async def _run(turns: list[list[Row]], given: dict[str, Any]) -> Outcome:
    numbered = iter(range(1, 1 + sum(map(len, turns))))
    named = [[(f"c{next(numbered)}", row) for row in rows] for rows in turns]
    results = {id: row[2] for rows in named for id, row in rows}
    script: list[Any] = [
        Response(calls=[Call(id, row[0], row[1]) for id, row in rows]) for rows in named
    ]
    outcome, started, turn = Outcome(), list[str](), 0

    def hear(event: AnyEvent) -> None:
        nonlocal turn
        if isinstance(event, TurnStart):
            turn = event.turn
        elif isinstance(event, ToolExecutionStart):
            started.append(event.tool_call_id)
        elif isinstance(event, Repetition):
            outcome.nudges.append(len(started))
            outcome.nudge_turns.append(turn)

    settings = Settings(
        repetition=given.get("mode", "graded"), repeatable=tuple(given.get("repeatable", ()))
    )
    model = ScriptedModel([*script, "Done."])
    tools = [_tool(name, results) for name in {row[0] for rows in turns for row in rows}]
    async with Agent(model, tools, thread=THREAD, settings=settings) as agent:
        agent.subscribe(hear)
        result = await asyncio.wait_for(agent.prompt("Work."), 30)
        ledger = agent.messages()
    answers = [message for message in ledger if isinstance(message, ToolMessage)]
    if result.reason == "repeated_action":
        refused = next(m for m in answers if isinstance(m.artifact, dict))
        outcome.stop, outcome.stop_turn = int(refused.tool_call_id[1:]), turn
    outcome.status, outcome.open_calls = result.status, unanswered(ledger)
    outcome.answered = len({message.tool_call_id for message in answers})
    outcome.notes = sum("[System note]" in str(m.content) for m in model.requests[-1].messages)
    return outcome


def _tool(name: str, results: dict[str, Any]) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        result = results[context.call_id]
        failed = isinstance(result, dict)
        return ToolResult(content=result["error"] if failed else result, is_error=failed)

    return Tool(
        name=name,
        description=f"The tool {name}.",
        parameters={"type": "object"},
        execute=execute,
    )


def _by(found: Sequence[int], most: int) -> str | None:
    return None if found and min(found) <= most else f"at {list(found)}"


def _stops(outcome: Outcome) -> list[int]:
    return [] if outcome.stop is None else [outcome.stop]


def nudges(outcome: Outcome, count: int) -> str | None:
    """How often the run was nudged; each nudge that is followed by a request is in it."""
    told = outcome.notes + (outcome.nudge_turns[-1:] == [outcome.stop_turn])
    return equal([len(outcome.nudges), told], [count, count])


def nudges_max(outcome: Outcome, count: int) -> str | None:
    """The run was nudged at most so often."""
    return None if len(outcome.nudges) <= count else f"at {outcome.nudges}"


LOOP: dict[str, Check] = {
    **PEOPLE,
    "nudge_by": lambda outcome, most: _by(outcome.nudges, most),
    "nudge_by_turn": lambda outcome, most: _by(outcome.nudge_turns, most),
    "stop_by": lambda outcome, most: _by(_stops(outcome), most),
    "stop_by_turn": lambda outcome, most: _by([outcome.stop_turn or 10**9], most),
    "nudge_or_stop_by": lambda outcome, most: _by([*outcome.nudges, *_stops(outcome)], most),
    "no_nudge": lambda outcome, wanted: equal(not outcome.nudges, wanted),
    "no_stop": lambda outcome, wanted: equal(outcome.stop is None, wanted),
    "nudges": nudges,
    "nudges_max": nudges_max,
    "each_call_answered": lambda outcome, wanted: equal(not outcome.open_calls, wanted),
    "open_calls": lambda outcome, ids: equal(outcome.open_calls, ids),
}
