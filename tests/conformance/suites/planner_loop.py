"""Suite `planner_loop`: sessions of the planner preset on scripted planners and one constant tool.

The n-th call of the planner gives its n-th output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loopwright.presets.planner import (
    SETTINGS,
    AgentState,
    Deps,
    Observer,
    PlannerOutput,
    create_initial_state,
    run_agent_loop,
)
from loopwright.wording import Wording
from tests.conformance.running import Case, difference, unknown_keys

INPUT = ("planner", "max_iterations", "token_budget", "mode", "repeatable")
ALIASES = {"REpeated_ACTION": "REPEATED_ACTION"}


@dataclass
class Played:
    """A scripted session, and what its parts saw."""

    outputs: list[dict[str, Any]]
    executed: list[str] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0

    def planner(self, state: AgentState) -> PlannerOutput:
        """The next output."""
        output = self.outputs[self.calls]
        self.calls += 1
        made = [
            {
                "id": f"call-{self.calls}-{at}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for at, (name, arguments) in enumerate(output["calls"])
        ]
        message: dict[str, Any] = {"role": "assistant", "content": "" if made else "Done."}
        if made:
            message["tool_calls"] = made
        return PlannerOutput(message=message, usage={"totalTokens": output["tokens"]})

    async def execute(self, call: dict[str, Any], ctx: Any) -> Any:
        """The one answer of every tool."""
        self.executed.append(call["id"])
        return "the same text"

    def save(self, session_id: str, state: AgentState) -> None:
        """Note at which iteration a state was exported."""
        self.saved.append(state["iteration"])

    def emit(self, record: dict[str, Any]) -> None:
        """Note a record of the trace."""
        self.records.append(record)


async def drive(case: Case) -> Sequence[str]:
    """Run the session; compare every key of what is expected."""
    given = case.input
    unknown = unknown_keys("input", given, INPUT)
    for output in given["planner"]:
        unknown += unknown_keys("a planner output", output, ["calls", "tokens"])
    if unknown:
        return unknown
    limits = replace(
        SETTINGS.limits,
        turns=given.get("max_iterations", SETTINGS.limits.turns),
        token_budget=given.get("token_budget", SETTINGS.limits.token_budget),
    )
    settings = replace(
        SETTINGS,
        limits=limits,
        repetition=given.get("mode", SETTINGS.repetition),
        repeatable=tuple(given.get("repeatable", ())),
    )
    played = Played(given["planner"])
    deps = Deps(
        planner=played.planner,
        tool_executor=played,
        observer=Observer(checkpoint=played),
        trace=played,
    )
    state = await run_agent_loop(create_initial_state("s", "Go."), deps, settings=settings)
    actual = _shown(state, played)
    reasons = unknown_keys("expected", case.expect, actual)
    reasons += difference("the planner's calls", played.calls, state["iteration"])
    for key in actual.keys() & case.expect.keys():
        reasons += difference(key, actual[key], _plain(case.expect[key]))
    return reasons


def _shown(state: AgentState, played: Played) -> dict[str, Any]:
    messages = state["messages"]
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    made = [call["id"] for m in messages for call in m.get("tool_calls", [])]
    assert answered == made, "every call has its result, in order"
    return {
        "status": state["status"],
        "abort_reason": state.get("abortReason"),
        "iteration": state["iteration"],
        "token_used": state["tokenUsed"],
        "tool_runs": len(played.executed),
        "budget_notes": sum(m["content"] == Wording().conclude for m in messages),
        "loop_warnings": sum(r["type"] == "warning" for r in played.records),
        "unexecuted_calls_closed": len(set(answered) - set(played.executed)),
        "checkpoints_at": played.saved,
    }


def _plain(wanted: Any) -> Any:
    return ALIASES.get(wanted, wanted) if isinstance(wanted, str) else wanted
