"""How a model makes a plan and sees it: the `plan` tool, the system part, the marks (S4-10).

The plan itself is `plans`; it is in the state, and in the transcript only as calls of the tool.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from loopwright.errors import ConfigurationError
from loopwright.forms import OutputForm
from loopwright.plans import Plan, marks
from loopwright.runs import Run
from loopwright.settings import Settings
from loopwright.state.schema import AgentState
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolRegistry, ToolResult

PLAN = "plan"
_STEPS = "plan_steps"
"""The key in the details of the tool's result; its value are the steps."""


async def _noted(arguments: JsonObject, context: ToolContext) -> ToolResult:
    steps = [str(step) for step in arguments["steps"]]
    return ToolResult(content=f"The plan has {len(steps)} steps.", details={_STEPS: steps})


plan_tool = Tool(
    name=PLAN,
    description=(
        "Write down the plan for the task, or replace it when results call for another one. Each "
        "step is one short sentence. Work on the steps between revisions: a plan that is only "
        "changed ends the run."
    ),
    parameters={
        "type": "object",
        "properties": {"steps": {"type": "array", "items": {"type": "string"}}},
        "required": ["steps"],
        "additionalProperties": False,
    },
    execute=_noted,
    effects="none",
    repeatable=True,  # drift is what bounds it
)
"""Give it to an agent among its tools; the state then has a plan."""


def planned(
    plan: Plan | None,
    message: AIMessage,
    results: Sequence[ToolMessage],
    settings: Settings,
) -> Plan | None:
    """The plan after a turn: the marks in its text, then its results in their order."""
    for step in marks(message.text):
        plan = plan and plan.marked(step)
    for result in results:
        steps = _steps(result)
        if steps is not None:
            plan = _changed(plan, steps, settings)
        elif result.status != "error":
            plan = plan and plan.worked()
    return plan


def _changed(plan: Plan | None, steps: Sequence[str], settings: Settings) -> Plan:
    if plan is None:
        return Plan(steps=tuple(steps))
    most_idle, most = settings.plan_idle_revisions, settings.plan_revisions
    return plan.revised(steps, most_idle=most_idle, most=most)


def _steps(result: ToolMessage) -> list[str] | None:
    """The steps that a call of the tool has set; None for every other result."""
    is_plan = result.name == PLAN and isinstance(result.artifact, dict)
    return result.artifact.get(_STEPS) if is_plan else None


def plan_of(state: AgentState) -> Plan | None:
    """The plan that the thread has."""
    stored = state.get("plan")
    return None if stored is None else Plan.from_json(stored)


def with_plan(state: AgentState, run: Run) -> str:
    """The system part of a request: the thread's prompt, and the plan as it stands."""
    prompt, plan, wording = state["system_prompt"], plan_of(state), run.dependencies.wording
    if plan is not None and plan.steps:
        part = wording.plan.replace("{plan}", plan.lines())
    elif _makes_plan(state, run):
        part = wording.make_plan
    else:
        return prompt
    return f"{prompt}\n\n{part}" if prompt else part


def _makes_plan(state: AgentState, run: Run) -> bool:
    return run.settings.plan_model is not None and plan_of(state) is None


def speaking(state: AgentState, run: Run) -> tuple[str, ToolRegistry]:
    """The model that this turn asks, and the tools that it is offered: while there is no plan, the
    one that makes it is offered the `plan` tool only (S4-13).
    """
    tools = run.offered_tools()
    if run.settings.plan_model is None or not _makes_plan(state, run):
        return run.settings.model, tools
    return run.settings.plan_model, tools.select([PLAN] if tools.get(PLAN) else [])


def held_to(state: AgentState, run: Run) -> OutputForm | None:
    """The form that this turn's provider is to hold the answer to; a plan is asked for without."""
    form = run.settings.output
    asks = form is not None and form.mode == "native" and not _makes_plan(state, run)
    return form if asks else None


def require_plan_tool(settings: Settings, tools: ToolRegistry) -> None:
    """Raise ConfigurationError for a model that should make plans without the tool for it."""
    if settings.plan_model is not None and tools.select(settings.tools).get(PLAN) is None:
        raise ConfigurationError(
            f"plan_model is {settings.plan_model!r} but there is no {PLAN!r} tool: add "
            "`loopwright.planning.plan_tool` to the tools",
            field="plan_model",
        )


def carried(state: AgentState, run: Run, *, is_empty: bool) -> dict[str, Any]:
    """The channel as a new run starts with it; nothing if there is no plan. A plan that is done
    ends with the run, and so does one of a transcript that was emptied.
    """
    if run.plan is not None:
        return {"plan": run.plan}
    plan = plan_of(state)
    if plan is None:
        return {}
    kept = None if is_empty else plan.carried()
    return {"plan": None if kept is None else kept.to_json()}


def followed(
    state: AgentState, run: Run, message: AIMessage, results: Sequence[ToolMessage]
) -> tuple[dict[str, Any], str | None]:
    """The channel after a turn, nothing if the plan stays as it is; and the drift that it shows."""
    before = plan_of(state)
    plan = planned(before, message, results, run.settings)
    if plan is None:
        return {}, None
    return ({} if plan == before else {"plan": plan.to_json()}), plan.drift


def revised(state: AgentState, run: Run, steps: Sequence[str]) -> dict[str, Any]:
    """The channel with other steps that a hook has set. Drift ends the run behind the next turn."""
    return _changed(plan_of(state), steps, run.settings).to_json()
