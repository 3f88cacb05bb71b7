"""Suite `plan_drift`: what becomes of a plan that is made, followed and revised in a run.

Marks stand in the text of the next message; every other event is a call of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loopwright import Agent, Settings
from loopwright.planning import plan_tool
from loopwright.testing import Response, ScriptedModel
from tests.conformance.running import Case, difference, unknown_keys

EVENTS = {
    "plan": ["steps"],
    "revise": ["steps"],
    "tool_ok": [],
    "tool_error": [],
    "step_done": ["step"],
}
LIMITS = {"max_idle_revisions": "plan_idle_revisions", "max_revisions": "plan_revisions"}
KEYS = ("drift", "drift_at", "reason", "revisions", "done_steps", "invalid_marks")


@dataclass
class Script:
    """The messages of a model, and the event that each of their calls stands for."""

    answers: list[Response | str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, events: list[dict[str, Any]]) -> "Script":
        """A message for each event but the marks, and a last one."""
        script, said = cls(), ""
        for index, event in enumerate(events):
            if event["type"] == "step_done":
                said += f"[Step {event['step']} done] "
                continue
            call = _call(event, index)
            script.answers.append(Response(text=said, calls=[call]))
            script.at.append(index)
            said = ""
        script.answers.append(f"{said}That is all.")
        return script


def _call(event: dict[str, Any], index: int) -> tuple[str, str, Any]:
    if event["type"] in ("plan", "revise"):
        return (f"c{index}", "plan", {"steps": event["steps"]})
    return (f"c{index}", "work", {"fails": event["type"] == "tool_error"})


async def drive(case: Case) -> Sequence[str]:
    """Run the events; compare the plan in the state, and where and why the run was ended."""
    events = case.input["events"]
    unknown = unknown_keys("input", case.input, ["events", *LIMITS])
    for event in events:
        unknown += unknown_keys("event type", {event["type"]: 0}, EVENTS)
        unknown += unknown_keys("an event", event, ["type", *EVENTS.get(event["type"], [])])
    unknown += unknown_keys("expected", case.expect, KEYS)
    if unknown:
        return unknown
    limits: dict[str, Any] = {LIMITS[key]: case.input[key] for key in LIMITS if key in case.input}
    script = Script.of(events)
    model = ScriptedModel(script.answers)
    settings = Settings(repetition="off", **limits)
    async with Agent(model, [plan_tool, work], settings=settings) as agent:
        result = await agent.prompt("Do it.")
        state = await agent.graph.aget_state({"configurable": {"thread_id": agent.thread}})
    plan = state.values["plan"]
    drifted = result.status == "stopped"
    actual = {
        "drift": drifted,
        "drift_at": script.at[result.turns - 1] if drifted else None,
        "reason": result.reason.upper() if drifted else None,
        "revisions": plan["revisions"],
        "done_steps": sorted(plan["done"]),
        "invalid_marks": plan["invalid_marks"],
    }
    reasons = difference("whether it drifts", plan["drift"] is not None, drifted)
    for key, wanted in case.expect.items():
        reasons += difference(key, actual[key], wanted)
    return reasons


def work(fails: bool) -> str:
    """Do some work."""
    if fails:
        raise RuntimeError("it went wrong")
    return "done"
