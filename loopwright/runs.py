"""What the steps of a run are given: the agent's parts, and the handle of the run that goes on.

Nothing here is stored; what must survive a restart is in `state.schema`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.store.base import BaseStore

from loopwright.clock import Clock, SystemClock
from loopwright.emitter import Emitter, Listeners, Sink, View
from loopwright.errors import LoopwrightError
from loopwright.events import AnyEvent, MessageEnd, MessageStart
from loopwright.hooks import Hooks
from loopwright.providers.contract import Provider
from loopwright.providers.prices import PriceTable, list_prices, priced
from loopwright.settings import QueueMode, Settings
from loopwright.signals import AbortSignal
from loopwright.spending import Usage, usage_of
from loopwright.state.ids import Ids
from loopwright.state.lease import Lease
from loopwright.state.log import Log, MemoryLog
from loopwright.state.messages import identified, new_id
from loopwright.state.schema import AgentState, Cursor, Overrides, RunRecord, Tree
from loopwright.state.view import shown
from loopwright.structured import Output
from loopwright.tools.arguments import DEFAULT_RULES, ArgumentRules
from loopwright.tools.contract import ToolRegistry
from loopwright.wording import Wording

ModelResolver = Callable[[str], Provider]


@dataclass
class QueueModes:
    """How many waiting messages a poll takes; may be changed while a run goes on."""

    steering: QueueMode
    follow_up: QueueMode


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """What a graph is built over and a checkpoint cannot hold; a run keeps what it started with."""

    resolve: ModelResolver
    """The provider of a model name; raises ConfigurationError."""

    tools: ToolRegistry = field(default_factory=ToolRegistry)
    system_prompt: str | None = None
    """None keeps the prompt that a thread was begun with."""

    settings: Settings = field(default_factory=Settings)
    output: Output[Any] | None = None
    """What runs answer with, if the settings do not say another form."""

    hooks: Hooks = field(default_factory=Hooks)
    log: Log = field(default_factory=MemoryLog)
    listeners: Listeners = field(default_factory=Listeners)
    workspace: Path | None = None
    queue_modes: QueueModes | None = None
    """Read at each poll; None takes the modes of the run's settings."""

    argument_rules: ArgumentRules = DEFAULT_RULES
    """What the arguments of a call may look like before its tool sees them."""

    wording: Wording = field(default_factory=Wording)
    clock: Clock = field(default_factory=SystemClock)
    """Tells how long a run has taken."""

    prices: PriceTable = field(default_factory=list_prices)
    """What tokens cost."""

    tracing: bool = False
    """Whether LangSmith tracing may be on during a run (its own switches decide then)."""

    observers: tuple[Callable[["Run"], None], ...] = ()
    """Called with each run before it begins: they may add views to its emitter, wrap what it
    depends on, and have something awaited at its end (see `telemetry.recording`)."""


@dataclass
class Watch:
    """What the rules of `watching` and `budgets` know of a run; made anew from ledger and log."""

    history: Any = None
    concluding: bool = False
    """Whether the run has used up its tokens and is to call no tool any more."""

    calls_left: int | None = None
    """Model calls that its wallet had left for it; None if there is no wallet."""


@dataclass
class Run:
    """One run in this process. The entrance makes it, `load` fills it, the guard keeps it true."""

    id: str
    lease: Lease
    """Its right to run the thread; released by the entrance."""

    dependencies: Dependencies
    signal: AbortSignal
    emitter: Emitter
    started: float = 0.0
    """When it began, by the clock of its dependencies."""

    entered: bool = False
    """True once the entrance has taken the run in; a nested graph then makes one of its own."""

    settled: bool = False
    """True once `finish` or `fail` has stored an outcome, or the run was refused."""

    overrides: Overrides = field(default_factory=lambda: Overrides())
    resumed_from: str | None = None
    asked_about: frozenset[str] = frozenset()
    """The calls about which the run that this one carries on has asked a person."""

    sink: Sink | None = None
    """Who gets the events instead of LangGraph's `custom` stream, which costs a task per step."""

    kept: bool = True
    """False if no checkpointer keeps the run: nothing of it can be carried on later."""

    store: BaseStore | None = None
    refusal: LoopwrightError | None = None
    """Set by `load` when the run cannot start; the entrance raises it."""

    appended: list[AnyMessage] = field(default_factory=list)
    """The messages that the current step has added; the guard moves them into the ledger."""

    rewritten: list[AnyMessage] | None = None
    """What the current step has put in place of the stored ledger, stored even if it then fails."""

    cursor: Cursor | None = None
    """Where the queues stand if the current step has added messages from them."""

    aside: Usage | None = None
    """What the current step has used for answers that do not join the ledger; see `spend`."""

    answer: str | None = None
    """The id of the last assistant message that this run itself has added."""

    transcript: list[AnyMessage] | None = None
    """What the thread's ledger is rewritten to when the run begins; None keeps it."""

    tree: Tree | None = None
    """The tree whose wallet the run shares, if another run has started it."""

    plan: dict[str, Any] | None = None
    """The plan that the run begins with; None takes the thread's."""

    watch: Watch = field(default_factory=Watch)
    ids: Ids | None = None
    settings: Settings = field(default_factory=Settings)

    held_to: Output[Any] | None = None
    """What the final answer is checked by; see `output`."""

    at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Awaited by the entrance when the run is over, whatever became of it."""

    @classmethod
    def start(
        cls,
        *,
        lease: Lease,
        dependencies: Dependencies,
        views: Sequence[View] = (),
    ) -> "Run":
        """A fresh run with an id of its own over these dependencies."""
        run_id = new_id()
        emitter = Emitter(run_id, dependencies.listeners, list(views))
        started = dependencies.clock.now()
        run = cls(run_id, lease, dependencies, lease.signal, emitter, started)
        for observe in dependencies.observers:
            observe(run)
        return run

    @property
    def thread(self) -> str:
        """The id of the thread that this run works on."""
        return self.lease.thread

    async def emit(self, event: AnyEvent, *, stored: bool = False) -> None:
        """Number and deliver an event (see `emitter`)."""
        await self.emitter.emit(event, stored=stored)

    async def append(
        self, message: AnyMessage, cursor: Cursor | None = None, *, stored: bool = False
    ) -> AnyMessage:
        """Add one complete message to the ledger with its pair of events.

        `cursor` counts it as delivered if it was queued; both are stored together. `stored` says
        that a kill would not lose the message, although the step that adds it goes on.
        """
        message = self.identify(message)
        await self.emit(MessageStart(message=message))
        return await self.complete(message, cursor, stored=stored)

    async def complete(
        self, message: AnyMessage, cursor: Cursor | None = None, *, stored: bool = False
    ) -> AnyMessage:
        """Add a message whose `message_start` was already emitted."""
        self.appended.append(message)
        self.cursor = cursor or self.cursor
        if isinstance(message, AIMessage):
            self.answer = message.id
        if self.ids is not None:
            self.ids.note(message)
        await self.emitter.emit(MessageEnd(message=message), stored=stored)
        return message

    def priced(self, message: AIMessage) -> AIMessage:
        """The answer with what it has cost, if that is known."""
        return priced(message, self.dependencies.prices)

    def spend(self, message: AIMessage) -> None:
        """Count an answer that was paid for and does not join the ledger, such as a summary, or
        one that broke off and is asked for again."""
        self.aside = usage_of([self.priced(message)], self.aside)

    def identify(self, message: AnyMessage) -> AnyMessage:
        """The message with an id that the ledger does not have yet."""
        taken = self.ids.messages if self.ids is not None else set()
        if message.id and message.id not in taken:
            return message
        return identified([message], set(taken))[0]

    def queue_mode(self, queue: Literal["steering", "follow_up"]) -> QueueMode:
        """How many messages a poll of this queue takes, as of now."""
        live = self.dependencies.queue_modes
        settings = QueueModes(self.settings.steering_mode, self.settings.follow_up_mode)
        return getattr(live or settings, queue)  # type: ignore[no-any-return]

    def argument_rules(self) -> ArgumentRules:
        """What the arguments of a call may look like, within the limits of the run."""
        return self.dependencies.argument_rules.within(self.settings.limits)

    def output(self) -> Output[Any]:
        """What the run has to answer with; only for one whose settings have a form."""
        form = self.settings.output
        assert form is not None
        if self.held_to is None or self.held_to.form is not form:
            self.held_to = Output.under(form, self.dependencies.output)
        return self.held_to

    def offered_tools(self) -> ToolRegistry:
        """The tools of this run, as the settings name them, and the one for its final answer."""
        chosen = self.dependencies.tools.select(self.settings.tools)
        if self.settings.output is None or self.settings.output.mode != "tool":
            return chosen
        return ToolRegistry((*chosen.tools, self.output().tool))


def ledger(state: AgentState, run: Run) -> list[AnyMessage]:
    """The whole ledger including what the current step has added; a fresh list."""
    return [*state.get("messages", []), *run.appended]


def context(state: AgentState, run: Run) -> list[AnyMessage]:
    """What a request is made of: the view's head and the ledger behind it; a fresh list."""
    return [*shown(state["view"], state["messages"]), *run.appended]


def opened(run: Run, size: int) -> RunRecord:
    """The record of a run that begins behind a ledger of this size."""
    record = RunRecord(
        id=run.id,
        resumed_from=run.resumed_from,
        status="running",
        sequence=run.emitter.sequence,
        turn=1,
        first=size,
        overflow=False,
    )
    if run.tree is not None or run.settings.limits.calls is not None:
        record["tree"] = run.tree or Tree(thread=run.thread, run=run.id)
    return record


def opened_turn(record: RunRecord, turn: int) -> RunRecord:
    """The record of a run whose next turn begins: what was answered before is not its answer."""
    return changed(record, turn=turn, **({"answered": None} if "answered" in record else {}))


def changed(record: RunRecord, **changes: Any) -> RunRecord:
    """The record with some fields replaced."""
    return RunRecord(**{**record, **changes})  # type: ignore[typeddict-item]


Update = Mapping[str, Any]
"""What a step returns: new values of its own channels, always with a `decision`."""
