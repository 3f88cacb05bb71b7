"""The face that a user sees: one thin class over the graph, its storage and its queues.

Every rule of a run is in the graph; every way in, this one too, goes through `graph.entrance`.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Self, Unpack

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command
from typing_extensions import TypeVar

from loopwright import background
from loopwright.background import require_loop
from loopwright.clock import Clock, SystemClock
from loopwright.emitter import Listener, Listeners
from loopwright.errors import UnknownThreadError
from loopwright.events import AnyEvent
from loopwright.graph.assembly import build
from loopwright.hooks import Hooks
from loopwright.live import LiveState
from loopwright.ongoing import Ongoing, OngoingRun
from loopwright.outcome import RunResult
from loopwright.providers.contract import Provider
from loopwright.providers.models import Models
from loopwright.providers.prices import Prices, price_table
from loopwright.queued import QueuedMessages
from loopwright.queueing import PromptOptions, WhenBusy, begun, queue_behind
from loopwright.runs import Dependencies, QueueModes, Run
from loopwright.settings import Environment, Settings, workspace_folder
from loopwright.signals import AbortSignal
from loopwright.state.aborts import request_abort
from loopwright.state.log import Log
from loopwright.state.messages import Prompt, as_messages, new_id
from loopwright.state.storage import storage_of
from loopwright.structured import Output, OutputKind
from loopwright.telemetry.trace import Trace
from loopwright.tools.registry import registry

T = TypeVar("T", default=Any)


class Agent(QueuedMessages, Generic[T]):
    """An agent over one database. Each thread in it is a conversation; one is this agent's own.

    `model` is a name (`provider/model`, `offline`), a langchain chat model or a Provider; None
    takes the environment's; `models` finds names that are not given here. `tools` are functions,
    langchain tools or `Tool`s. `system_prompt` None keeps the one that a thread was begun with.
    `database` None keeps everything in memory; a `checkpointer` of your own may be given instead,
    with a `log` for its queues and its journal. `output` is what a run has to answer with: a type
    that pydantic knows, a JSON schema, or an `Output`; None takes any text. `workspace` is the
    folder that file tools are confined to. `trace` is a file to which its runs are written, None
    the environment's; other `observers` are called with each run. Runs go by `clock`, `prices` come
    before the list prices, and `fallback` are asked in turn (see Settings). Raises
    ConfigurationError and DatabaseError.

    Async methods run on the caller's event loop, `run` on one background loop per process. Use it
    as a context manager, or call `close` or `aclose`, to close the database.
    """

    def __init__(
        self,
        model: str | BaseChatModel | Provider | None = None,
        tools: Iterable[Any] = (),
        system_prompt: str | None = None,
        *,
        database: str | Path | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        log: Log | None = None,
        workspace: str | Path | None = None,
        thread: str | None = None,
        settings: Settings | None = None,
        hooks: Hooks | None = None,
        output: OutputKind[T] | None = None,
        models: Callable[[str], Provider] | None = None,
        store: BaseStore | None = None,
        environment: Environment | None = None,
        trace: str | Path | None = None,
        observers: Iterable[Callable[[Run], None]] = (),
        prices: Prices | None = None,
        fallback: Iterable[str | BaseChatModel | Provider] = (),
        clock: Clock | None = None,
    ) -> None:
        environment, settings = environment or Environment(), settings or Settings()
        self.thread = thread or new_id()
        self._models = Models(environment, models)
        self._modes = QueueModes(settings.steering_mode, settings.follow_up_mode)
        name = self._models.add(environment.model if model is None else model)
        others = tuple(map(self._models.add, fallback))
        traced = environment.trace if trace is None else trace
        self._trace = None if traced is None else Trace(traced, environment=environment)
        dependencies = Dependencies(
            resolve=self._models.resolve,
            tools=registry(tools),
            system_prompt=system_prompt,
            settings=replace(settings, model=name, fallback=others or settings.fallback),
            clock=clock or SystemClock(),
            output=None if output is None else Output.of(output),
            hooks=hooks or Hooks(),
            listeners=Listeners(),
            queue_modes=self._modes,
            workspace=None if workspace is None else workspace_folder(workspace),
            tracing=environment.tracing,
            prices=price_table(environment.prices, prices),
            observers=(*observers, *([self._trace] if self._trace else ())),
        )
        self._storage = storage_of(database, checkpointer, log, store)
        self._close = weakref.finalize(self, self._storage.close)
        self._live = LiveState()
        self._loaded = checkpointer is None and database is None
        self._ongoing: dict[str, OngoingRun] = {}
        self.graph = build(
            replace(dependencies, log=self._storage.log),
            checkpointer=self._storage.checkpointer,
            store=store,
            leases=self._storage.leases,
        )

    # ---- runs

    def prompt(
        self,
        prompt: Prompt,
        *,
        thread: str | None = None,
        images: Sequence[Any] = (),
        when_busy: WhenBusy = "error",
        output: OutputKind[Any] | None = None,
    ) -> Ongoing[T]:
        """Start a run with a prompt; await what is returned for its RunResult.

        The thread is claimed before this returns: BusyThreadError if a run is going on here; for
        one in another process it is raised where the result is awaited. With `when_busy` follow_up
        the prompt then becomes a follow-up of that run: stored when the result (`queued`) is there.
        With an `output` this run answers with that instead of the agent's own (its type is then
        not the T of the agent). Must be called inside an event loop; `run` is the blocking form.
        Cancelling the awaiting task cancels the run.
        """
        messages, name = as_messages(prompt, images), thread or self.thread
        return begun(
            when_busy,
            lambda: self._start({"messages": messages}, name, output),
            lambda: queue_behind(self.graph, name, messages),
        )

    def stream(self, prompt: Prompt, **options: Unpack[PromptOptions]) -> AsyncIterator[AnyEvent]:
        """Start a run and iterate its events; a slow or leaving consumer does not disturb it.

        `options` are those of `prompt`. A prompt that is queued has no events.
        """
        return aiter(self.prompt(prompt, **options))

    def run(self, prompt: Prompt, **options: Unpack[PromptOptions]) -> RunResult[T]:
        """Run a prompt and wait for the result; callable from any thread, also inside a loop.

        `options` are those of `prompt`. Raises NestedCallError when called from Loopwright's own
        loop (an async tool or listener of another `run`).
        """

        async def work() -> RunResult[T]:
            return await self.prompt(prompt, **options)

        return background.run(work)

    def continue_(self, *, thread: str | None = None) -> Ongoing[T]:
        """Start a run without a prompt, or with queued messages behind an answer.

        Awaiting it raises ContinuationError if there is nothing to continue from.
        """
        return self._start({"continue": True}, thread)

    def resume(
        self,
        answers: Any = None,
        *,
        thread: str | None = None,
        output: OutputKind[Any] | None = None,
    ) -> Ongoing[T]:
        """Carry on a run that was interrupted: with `answers` for what it asked, or from where it
        died. It is a new run that names the old one in `resumed_from`. What it has to answer with
        is stored; `output` gives the type again that was given with the prompt.
        """
        return self._start(None if answers is None else Command(resume=answers), thread, output)

    def _start(
        self, given: Any, thread: str | None, output: OutputKind[Any] | None = None
    ) -> OngoingRun[T]:
        require_loop()
        name = thread or self.thread
        lease = self.graph.leases.claim(name)
        own = name == self.thread
        views = [self._live] if own else []
        parts = self._dependencies()
        if output is not None:
            chosen = replace(parts.settings, output=None)
            parts = replace(parts, output=Output.of(output), settings=chosen)
        run = Run.start(lease=lease, dependencies=parts, views=views)
        if own:
            run.transcript = list(self._live.messages) if self._live.edited else None
            self._live.claim()

        def settle() -> None:
            self._ongoing.pop(name, None)
            if own:
                self._live.settle()
                # What was shown of a run that raised may not be stored.
                self._loaded = self._loaded and ongoing.has_ended

        ongoing: OngoingRun[T] = OngoingRun(self.graph, run, given, settle)
        self._ongoing[name] = ongoing
        return ongoing

    def _dependencies(self) -> Dependencies:
        """What the next run starts with."""
        return self.graph.dependencies

    # ---- while a run goes on

    @property
    def state(self) -> LiveState:
        """What this agent's own thread shows between two events; see LiveState."""
        if not self._loaded:
            self._loaded = True
            if not self._live.is_streaming:
                self._live.begin([])
                with suppress(UnknownThreadError):
                    self._live.begin(self.messages())
        return self._live

    @property
    def signal(self) -> AbortSignal | None:
        """The cancel signal of the own thread's run, None while it is idle."""
        ongoing = self._ongoing.get(self.thread)
        return None if ongoing is None else ongoing.run.signal

    def abort(self, *, thread: str | None = None, reason: str = "cancelled") -> None:
        """Set the cancel signal of the thread's run, whoever in this process has started it; does
        nothing on an idle thread.
        """
        self.graph.leases.abort(thread or self.thread, reason)

    def request_abort(self, *, thread: str | None = None, reason: str = "cancelled") -> None:
        """As `abort`, but also for a run in another process, which notices within a second."""
        self.abort(thread=thread, reason=reason)
        request_abort(self._storage.log, thread or self.thread, reason)

    async def wait_for_idle(self, *, thread: str | None = None) -> None:
        """Return when no run of the thread is going on here and its last listener is done."""
        ongoing = self._ongoing.get(thread or self.thread)
        if ongoing is not None:
            await ongoing.settled()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear every event of every run of this agent, awaited in order. Returns its removal.

        A listener that raises ends the run with status `failed`.
        """
        return self.graph.dependencies.listeners.add(listener)

    # ---- the end

    async def aclose(self) -> None:
        """Abort what is going on, wait for it, and close the database."""
        for ongoing in list(self._ongoing.values()):
            ongoing.run.signal.abort("the agent was closed")
            await ongoing.settled()
        await self._models.aclose()
        await asyncio.to_thread(self._close)
        if self._trace is not None:
            await asyncio.to_thread(self._trace.close)

    def close(self) -> None:
        """`aclose` for blocking callers. Raises NestedCallError in the event loop of a run."""
        for ongoing in list(self._ongoing.values()):
            ongoing.refuse_blocking()
        background.run(self.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
