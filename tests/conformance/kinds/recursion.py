"""Kind `recursion`: a run of many tool rounds, or one whose caller sets LangGraph's own limit.

What ends a run is told by its result; LangGraph's limit must never show.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from loopwright import Agent
from loopwright.testing import Response, ScriptedModel
from tests.conformance.checks import PEOPLE, Check, equal, unanswered, unmet
from tests.conformance.running import Case, unknown_keys

THREAD = "long"
AGAIN = "Are you still there?"
ROUNDS = 40
"""Tool rounds of a case that does not say: more than any limit that callers send."""


@dataclass(frozen=True)
class Outcome:
    """What came of the run, and of a prompt to the same thread after it."""

    rounds: int
    error: BaseException | None
    result: dict[str, Any]
    ledger: list[AnyMessage]
    tool_runs: int
    model_calls: int
    after: str
    """The status of the run after it."""

    @property
    def status(self) -> str:
        """How the run ended; `raised` if it gave no result."""
        return str(self.result.get("status", "raised"))

    @property
    def message(self) -> str:
        """What is said about the end: the rule that ended the run, or the error's text."""
        return str(self.error or self.result.get("reason", ""))


async def drive(case: Case) -> Sequence[str]:
    """Run the rounds through the graph, as a server does, then prompt the thread once more."""
    unknown = unknown_keys("input", case.input, ["rounds", "recursion_limit"])
    if unknown:
        return unknown
    limit = {key: case.input[key] for key in case.input if key == "recursion_limit"}
    outcome = await _run(case.input.get("rounds", ROUNDS), limit)
    return unmet(case.expect, outcome, RECURSION)


async def _run(rounds: int, limit: dict[str, int]) -> Outcome:
    runs: list[str] = []

    def step(number: int) -> str:
        """One step of the work."""
        runs.append("step")
        return "done"

    def answer(messages: list[BaseMessage]) -> str | Response:
        if messages[-1].content == AGAIN:
            return "Here."
        made = sum(isinstance(message, ToolMessage) for message in messages)
        return (
            Response(calls=[(f"c{made}", "step", {"number": made})]) if made < rounds else "Done."
        )

    model = ScriptedModel(repeat(answer))
    async with Agent(model, [step]) as agent:
        config: Any = {"configurable": {"thread_id": THREAD}, **limit}
        run = agent.graph.ainvoke({"messages": [("user", "Work.")]}, config)
        given: Any = (await asyncio.gather(run, return_exceptions=True))[0]
        raised = given if isinstance(given, BaseException) else None
        ledger, asked, ran = agent.messages(THREAD), len(model.requests), len(runs)
        next_run = agent.prompt(AGAIN, thread=THREAD)
        later: Any = (await asyncio.gather(next_run, return_exceptions=True))[0]
    after = type(later).__name__ if isinstance(later, BaseException) else later.status
    result = {} if isinstance(given, BaseException) else given["result"]
    return Outcome(rounds, raised, result, ledger, ran, asked, after)


def no_graph_recursion_error(outcome: Outcome, wanted: bool) -> str | None:
    """LangGraph's own limit shows neither as an exception nor in the result."""
    said = f"{type(outcome.error).__name__} {outcome.message} {outcome.result.get('error')}"
    return equal("recursion" not in said.lower(), wanted)


def _completes(outcome: Outcome) -> bool:
    return outcome.status == "completed" and outcome.tool_runs == outcome.rounds


def _ends_by_own_budget(outcome: Outcome) -> bool:
    return outcome.status == "limit" and bool(outcome.message)


def _stops_clearly(outcome: Outcome) -> bool:
    stopped = outcome.status in ("limit", "stopped", "failed", "raised")
    return stopped and bool(outcome.message) and no_graph_recursion_error(outcome, True) is None


ENDS = {
    "done": _completes,
    "own budget": _ends_by_own_budget,
    "the run completes": _completes,
    "it stops with a clear message": _stops_clearly,
}
"""The ends that the cases speak of."""


def ends_by(outcome: Outcome, wanted: str) -> str | None:
    """One of the ends that the text names (`own budget or done`)."""
    return any_of(outcome, [word.strip() for word in wanted.split(" or ")])


def any_of(outcome: Outcome, ends: list[str | dict[str, Any]]) -> str | None:
    """One of these ends, or expectations; a text that names no known end is a fault."""
    unknown = [end for end in ends if isinstance(end, str) and end not in ENDS]
    if unknown:
        return f"unknown end {unknown[0]!r}"
    met = [
        ENDS[end](outcome) if isinstance(end, str) else not unmet(end, outcome, RECURSION)
        for end in ends
    ]
    return None if any(met) else f"it ended with {outcome.status} ({outcome.message})"


def thread_usable_after(outcome: Outcome, wanted: bool) -> str | None:
    """A prompt after the run completes."""
    return equal(outcome.after == "completed", wanted)


def open_calls(outcome: Outcome, ids: list[str]) -> str | None:
    """The calls without a result in the stored transcript."""
    return equal(unanswered(outcome.ledger), ids)


def no_exception(outcome: Outcome, wanted: bool) -> str | None:
    """The caller got a result."""
    return equal(outcome.error is None, wanted)


def tool_runs(outcome: Outcome, count: int) -> str | None:
    """How often the tool ran."""
    return equal(outcome.tool_runs, count)


def model_calls(outcome: Outcome, count: int) -> str | None:
    """How many requests the run sent."""
    return equal(outcome.model_calls, count)


def max_model_calls(outcome: Outcome, count: int) -> str | None:
    """The run sent at most this many requests."""
    return None if outcome.model_calls <= count else f"{outcome.model_calls} requests"


def clear_message(outcome: Outcome, wanted: bool) -> str | None:
    """The end is told in words of our own."""
    told = bool(outcome.message) and no_graph_recursion_error(outcome, True) is None
    return equal(told, wanted)


RECURSION: dict[str, Check] = {
    **PEOPLE,
    "any_of": any_of,
    "clear_error": clear_message,
    "clear_message": clear_message,
    "ends_by": ends_by,
    "max_model_calls": max_model_calls,
    "model_calls": model_calls,
    "no_exception": no_exception,
    "no_graph_recursion_error": no_graph_recursion_error,
    "open_calls": open_calls,
    "thread_usable_after": thread_usable_after,
    "tool_runs": tool_runs,
}
