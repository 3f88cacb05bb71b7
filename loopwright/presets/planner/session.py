"""One session as the document sees it: a view of the core's run, told as states and trace lines.

Nothing here decides how a run goes on, except that an observer may end it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.events import AnyEvent, MessageEnd, Repetition, TurnEnd
from loopwright.hooks import NextTurn, TurnContext, settled
from loopwright.outcome import RunResult
from loopwright.planning import planned
from loopwright.plans import Plan
from loopwright.presets.planner.observer import Trace
from loopwright.presets.planner.state import (
    AgentState,
    abort,
    chat_messages,
    core_messages,
    core_plan,
    tool_results,
)
from loopwright.settings import Settings
from loopwright.spending import usage_of
from loopwright.state.messages import calls, error_of

Observe = Callable[[AgentState], AgentState | Awaitable[AgentState]]

REASONS = {"max_turns": "MAX_ITERATIONS", "aborted": "CANCELLED"}
"""The document's codes for the reasons of the core; every other one is the core's in capitals."""


class Session:
    """Follows the core's run of one session. `given` is the state that it goes on from."""

    def __init__(
        self,
        given: AgentState,
        settings: Settings,
        observe: Observe | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.prompt, self.transcript = core_messages(given)
        self.plan: Plan | None = core_plan(given["plan"]) if "plan" in given else None
        self._given = given
        self._settings = settings
        self._observe = observe
        self._trace = trace
        self._messages: list[AnyMessage] = list(self.transcript)
        self._ended: AgentState | None = None
        self._steps: list[str] | None = None
        """The steps of a plan that the observer has set."""

        answers = sum(isinstance(message, AIMessage) for message in self.transcript)
        self._iterations = given["iteration"] - answers
        self._tokens = 0 if answers else given["tokenUsed"]
        if answers:
            self._count(given["tokenUsed"])

    def _count(self, tokens: int) -> None:
        """Let the last answer of the given state stand for all tokens that were used up to it."""
        at = max(at for at, m in enumerate(self.transcript) if isinstance(m, AIMessage))
        usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
        counted = self.transcript[at].model_copy(update={"usage_metadata": usage})
        self.transcript[at] = self._messages[at] = counted

    def go_on(self, messages: Sequence[AnyMessage], plan: dict[str, Any] | None) -> None:
        """Show the transcript of a session that a database has kept instead of the given one."""
        self._messages = list(messages)
        self.plan = self.plan if plan is None else Plan.from_json(plan)

    # ---- what the core tells

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """The core begins with this transcript: the given one, with open calls answered."""
        self._messages = list(messages)

    def apply(self, event: AnyEvent) -> None:
        """Follow one event of the core."""
        match event:
            case MessageEnd():
                self._messages.append(event.message)
            case TurnEnd() if error_of(event.message) is None:
                assert isinstance(event.message, AIMessage)
                self.plan = planned(self.plan, event.message, event.tool_results, self._settings)
                self._emit("step", tools=[call.name for call in calls(event.message)])
            case Repetition():
                self._emit("warning", circle=event.circle, tools=event.tool_names)
            case _:
                pass

    def _emit(self, type: str, **more: Any) -> None:
        if self._trace is None:
            return
        state = self.state()
        about = {"sessionId": state["sessionId"], "step": state["iteration"]}
        counts = {"toolCount": len(state["toolResults"]), "tokenUsed": state["tokenUsed"]}
        self._trace.emit({"type": type, **about, **counts, **more})

    def state(self) -> AgentState:
        """The state as it stands; a fresh object."""
        answers = [
            message
            for message in self._messages
            if isinstance(message, AIMessage) and error_of(message) is None
        ]
        state = AgentState(
            sessionId=self._given["sessionId"],
            messages=[*self._system(), *chat_messages(self._messages)],
            toolResults=tool_results(self._messages),
            iteration=self._iterations + len(answers),
            tokenUsed=self._tokens + usage_of(answers)["total_tokens"],
            status="running",
        )
        if self.plan is not None:
            state["plan"] = self.plan.lines()
        return state

    def _system(self) -> list[dict[str, Any]]:
        return [{"role": "system", "content": self.prompt}] if self.prompt else []

    # ---- what the core asks

    async def after_turn(self, turn: TurnContext) -> bool:
        """Show the observer a state behind an executed batch; whether it has ended the session."""
        if self._observe is None or not calls(turn.message):
            return False
        before = self.state()
        state: AgentState = await settled(self._observe(before))
        if state["status"] != "running":
            self._ended = state
            return True
        text = state.get("plan")
        if text is not None and text != before.get("plan"):
            self._steps = list(core_plan(text).steps)
        return False

    async def next_turn(self, turn: TurnContext) -> NextTurn | None:
        """The plan that the observer has put in the place of the model's."""
        steps, self._steps = self._steps, None
        if steps is None:
            return None
        most_idle, most = self._settings.plan_idle_revisions, self._settings.plan_revisions
        plan = self.plan or Plan(progress=True, revisions=-1)
        self.plan = plan.revised(steps, most_idle=most_idle, most=most)
        return NextTurn(plan=steps)

    def final(self, result: RunResult) -> AgentState:
        """The state at the end of the core's run."""
        state = self._final(result)
        reason = {"abortReason": state["abortReason"]} if "abortReason" in state else {}
        self._emit("end", status=state["status"], **reason)
        return state

    def _final(self, result: RunResult) -> AgentState:
        if self._ended is not None:
            return self._ended
        if result.status == "completed":
            return AgentState(**{**self.state(), "status": "done"})
        if result.status == "failed":
            error = result.error or {"message": result.reason}
            return abort(self.state(), f"FAILED: {error['message']}")
        return abort(self.state(), REASONS.get(result.reason, result.reason.upper()))
