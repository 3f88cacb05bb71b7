"""Which limit ends a run before its next turn, and the last answer that a run may be given.

The limits themselves are in `settings`; what of an answer is bounded is checked in
`providers.protocol`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from loopwright.errors import InputError
from loopwright.events import Budget, RunStatus, TurnStart
from loopwright.runs import Run, opened_turn
from loopwright.settings import Limits
from loopwright.spending import usage_of
from loopwright.state.messages import new_id
from loopwright.state.schema import AgentState, Overrides

TURNS, SECONDS, TOKENS, COST = "max_turns", "max_seconds", "max_tokens", "max_cost"
CALLS = "max_calls"
"""The reasons of runs that a limit has ended, and the names of their overrides."""

_FIELDS = {TURNS: "turns", SECONDS: "seconds", TOKENS: "tokens", COST: "cost", CALLS: "calls"}

STATUSES: dict[str, RunStatus] = dict.fromkeys(_FIELDS, "limit")


def overridden(limits: Limits, overrides: Overrides) -> Limits:
    """The limits with what was set for one run. Raises ConfigurationError."""
    given: Any = {_FIELDS[name]: value for name, value in overrides.items() if name in _FIELDS}
    return replace(limits, **given) if given else limits


def require_fit(limits: Limits, messages: Sequence[AnyMessage]) -> None:
    """Raise InputError for more messages than a run may begin with."""
    most = limits.initial_messages
    if most is not None and len(messages) > most:
        raise InputError(
            f"the run would begin with {len(messages):,} messages: at most {most:,} are allowed "
            "(limits.initial_messages)"
        )


def reached(state: AgentState, run: Run) -> str | None:
    """The limit that leaves no room for another turn, by its reason; None if there is room."""
    record, limits = state["run"], run.settings.limits
    if record["turn"] >= limits.turns:
        return TURNS
    if run.watch.calls_left == 0:
        return CALLS
    if limits.seconds is not None:
        if run.dependencies.clock.now() - run.started >= limits.seconds:
            return SECONDS
    if limits.tokens is None and limits.cost is None:
        return None
    used = usage_of(state["messages"][record["first"] :], record.get("aside"))
    if limits.tokens is not None and used["total_tokens"] >= limits.tokens:
        return TOKENS
    if limits.cost is not None and used["known_cost"] >= limits.cost:
        return COST
    return None


def has_last_answer(state: AgentState, run: Run) -> bool:
    """Whether the turn that has just ended is the last one, and one more is given for an answer."""
    limits = run.settings.limits
    return limits.last_answer and state["run"]["turn"] == limits.turns


def is_last_answer(state: AgentState, run: Run) -> bool:
    """Whether this turn is the one behind the last (S3-08)."""
    return state["run"]["turn"] > run.settings.limits.turns


async def open_last_answer(state: AgentState, run: Run) -> dict[str, Any]:
    """Open the turn behind the last one: counted, announced, and without tools from here on."""
    turn = state["run"]["turn"] + 1
    run.settings = replace(run.settings, tools=())
    await run.emit(Budget(name="turns", left=0))
    await run.emit(TurnStart(turn=turn))
    return {"settings": run.settings.to_json(), "run": opened_turn(state["run"], turn)}


def announced(state: AgentState, run: Run, messages: list[AnyMessage]) -> list[AnyMessage]:
    """The messages of a request; the model is told, in this request only, that it is its last."""
    if not is_last_answer(state, run):
        return messages
    return [*messages, HumanMessage(run.dependencies.wording.last_answer, id=new_id())]
