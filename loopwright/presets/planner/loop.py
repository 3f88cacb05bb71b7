"""The document's loop: planner, executor, observer, run as one graph of the core (S4-03).

Every rule of the run is the core's; this pins its policies and wires the three parts to it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from typing_extensions import TypedDict

from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.hooks import Hooks, Messages, settled
from loopwright.ongoing import OngoingRun
from loopwright.outcome import RunResult
from loopwright.planning import plan_tool
from loopwright.presets.planner.executor import TOOL_TIMEOUT, Executing, Executor, ToolExecutor
from loopwright.presets.planner.observer import Trace
from loopwright.presets.planner.session import Observe, Session
from loopwright.presets.planner.state import (
    AgentState,
    ChatMessage,
    abort,
    chat_messages,
    core_answer,
)
from loopwright.providers.contract import ModelRequest, Provider, StreamEnd, StreamEvent
from loopwright.providers.models import Models
from loopwright.runs import Dependencies, Run
from loopwright.settings import Environment, Limits, Settings
from loopwright.signals import Aborted, AbortSignal
from loopwright.state.messages import ABORTED, failure
from loopwright.state.storage import Storage, sqlite_storage

MAX_ITERATIONS = 12
TOKEN_BUDGET = 80_000

SETTINGS = Settings(
    model="planner",
    repetition="first_repeat",
    tool_execution="sequential",
    repair_policy="always",
    limits=Limits(turns=MAX_ITERATIONS, token_budget=TOKEN_BUDGET),
)
"""The document's policies (S4-04, S4-05, K16, K21)."""


class PlannerOutput(TypedDict):
    """What one call of a planner gives: the message, and `{"totalTokens": n}`."""

    message: ChatMessage
    usage: dict[str, int]


Planner = Callable[[AgentState], PlannerOutput | Awaitable[PlannerOutput]]


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The three parts of the loop, each replaceable, and what may be added to them."""

    planner: Planner | BaseChatModel | Provider
    """One model call: a function of the state, or a model that is asked directly."""

    tool_executor: Executor = field(default_factory=ToolExecutor)
    observer: Observe | None = None
    """Called behind every executed batch; the state that it returns may end the run, or have
    another plan."""

    generate_plan: Callable[[str], str | Awaitable[str]] | None = None
    """Makes the plan of a session that has none, from the user's query; a step each line."""

    plan_model: BaseChatModel | Provider | None = None
    """The model that makes it instead, by the `plan` tool; the planner may revise it (S4-13)."""

    trace: Trace | None = None
    """Gets one record for every step, one for every warning, and one for the end (S4-12)."""


async def run_agent_loop(
    state: AgentState,
    deps: Deps,
    *,
    settings: Settings = SETTINGS,
    signal: AbortSignal | None = None,
    database: str | Path | None = None,
) -> AgentState:
    """Go on from a state until it is done or aborted, and return that one; `state` stays as it is.

    With a `database` every step of the session is stored, and a session that was killed goes on
    from there, whatever `state` says. Without one only the returned state, and those that the
    observer exports, can be gone on from. Raises InputError for a state that is none, and
    DatabaseError.
    """
    if state["status"] != "running":
        return state
    if state["iteration"] >= settings.limits.turns:
        return abort(state, "MAX_ITERATIONS")
    last = state["messages"][-1]
    if last["role"] == "assistant" and not last.get("tool_calls"):
        return AgentState(**{**state, "status": "done"})
    state = await _with_plan(state, deps)
    storage = None if database is None else sqlite_storage(database)
    try:
        return await _run(state, deps, settings, signal, storage)
    finally:
        if storage is not None:
            storage.close()


async def _with_plan(state: AgentState, deps: Deps) -> AgentState:
    if deps.generate_plan is None or "plan" in state:
        return state
    query = next(m["content"] for m in reversed(state["messages"]) if m["role"] == "user")
    plan = await settled(deps.generate_plan(query))
    return AgentState(**{**state, "plan": plan})


async def _run(
    state: AgentState,
    deps: Deps,
    settings: Settings,
    signal: AbortSignal | None,
    storage: Storage | None,
) -> AgentState:
    session = Session(state, settings, deps.observer, deps.trace)
    dependencies = _dependencies(session, state, deps, settings)
    if storage is None:
        graph = build(dependencies)
    else:
        dependencies = replace(dependencies, log=storage.log)
        graph = build(dependencies, checkpointer=storage.checkpointer, leases=storage.leases)
    lease = graph.leases.claim(state["sessionId"], signal=signal)
    run = Run.start(lease=lease, dependencies=dependencies, views=[session])
    given = await _given(graph, run, session, is_stored=storage is not None)
    result: RunResult = await OngoingRun(graph, run, given, lease.release)
    return session.final(result)


async def _given(graph: AgentGraph, run: Run, session: Session, *, is_stored: bool) -> Any:
    """The input of the core's run: none if a killed one is carried on from the database."""
    if is_stored:
        stored = await graph.aget_state({"configurable": {"thread_id": run.thread}})
        if stored.tasks:
            session.go_on(stored.values.get("messages", []), stored.values.get("plan"))
            return None
    run.transcript = list(session.transcript)
    run.plan = None if session.plan is None else session.plan.to_json()
    return {"continue": True}


def _dependencies(
    session: Session, state: AgentState, deps: Deps, settings: Settings
) -> Dependencies:
    """What the core's graph is built over, with what is left of the limits."""
    models, planner = Models(Environment()), deps.planner
    is_model = isinstance(planner, BaseChatModel) or hasattr(planner, "stream")
    model: Any = planner if is_model else FunctionPlanner(planner, session)  # type: ignore[arg-type]
    limits, others = settings.limits, () if deps.plan_model is None else (plan_tool,)
    budget = limits.token_budget
    has_timeout = hasattr(deps.tool_executor, "timeout")
    return Dependencies(
        resolve=models.resolve,
        tools=Executing.of(deps.tool_executor, state["sessionId"], *others),
        system_prompt=session.prompt,
        settings=replace(
            settings,
            model=models.add(model),
            plan_model=None if deps.plan_model is None else models.add(deps.plan_model),
            tool_timeout=settings.tool_timeout or (None if has_timeout else TOOL_TIMEOUT),
            limits=replace(
                limits,
                turns=limits.turns - state["iteration"],
                token_budget=None if budget is None else max(0, budget - state["tokenUsed"]),
            ),
        ),
        hooks=Hooks(
            convert_to_llm=_all if not is_model else Hooks().convert_to_llm,
            should_stop_after_turn=session.after_turn,
            prepare_next_turn=session.next_turn,
        ),
    )


def _all(messages: Messages) -> Messages:
    """A function sees the state, notes included."""
    return messages


@dataclass
class FunctionPlanner(Provider):
    """A planner function as a provider of the core."""

    planner: Planner
    session: Session
    id: str = "planner"

    def context_window(self, model: str) -> int | None:
        """A function does not say."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Show the planner the state, with the plan in its system message. What it raises is a
        fault of the run.
        """
        system = {"role": "system", "content": request.system_prompt}
        state = self.session.state()
        state["messages"] = [system, *chat_messages(request.messages)]
        try:
            output = await request.signal.race(_awaited(self.planner(state)))
        except Aborted:
            answer = failure("cancelled", kind="aborted", reason=ABORTED, model=request.model)
            yield StreamEnd(message=answer)
            return
        tokens = output["usage"]["totalTokens"]
        usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
        answer = core_answer(output["message"])
        yield StreamEnd(message=answer.model_copy(update={"usage_metadata": usage}))


async def _awaited(output: PlannerOutput | Awaitable[PlannerOutput]) -> PlannerOutput:
    return await settled(output)
