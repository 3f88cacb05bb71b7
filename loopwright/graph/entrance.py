"""The one way into the graph for every caller: Agent, LangServe, dev server, `prompt | graph`.

It admits the input, takes the thread, makes the run and settles it; the steps are the nodes'.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Self, cast

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, StateSnapshot, StateUpdate
from pydantic import BaseModel

from loopwright import background
from loopwright.approvals import asked_about
from loopwright.errors import ConfigurationError, ContinuationError
from loopwright.events import AgentEnd, AgentStart
from loopwright.graph.admission import addressed, admit, admit_update, schema_of
from loopwright.graph.guard import RUN_KEY
from loopwright.graph.holding import give_back, take
from loopwright.graph.pump import Pump
from loopwright.graph.rewinding import rewound, updated
from loopwright.graph.streams import Framing
from loopwright.runs import Dependencies, Run
from loopwright.spending import usage_of
from loopwright.state.database import Database
from loopwright.state.keeping import forget, thin
from loopwright.state.lease import Leases
from loopwright.state.lease_table import LEASE_KEY
from loopwright.state.messages import new_id
from loopwright.state.schema import AgentInput, AgentOutput, Decision, Overrides

STEPS = 1_000_000
"""Supersteps LangGraph may take: our own limits end a run, never LangGraph's (callers send 25)."""

# Where LangGraph looks for these two in a config: a parent graph lends them to its subgraphs.
DURABILITY_KEY = "__pregel_durability"
SAVER_KEY = "__pregel_checkpointer"


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The compiled graph of an agent, safe to hand to anything that takes a LangGraph graph.

    Input `{"messages": [...]}`, output `{"messages": [...], "result": {...}}`. Whatever the caller
    says, the recursion limit is ours, durability is `sync`, the ledger cannot be overwritten, and
    one run at a time works on a thread. Blocking methods run the async ones on the background loop.
    """

    def __init__(self, *, dependencies: Dependencies, leases: Leases, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.dependencies = dependencies
        self.leases = leases

    @classmethod
    def over(
        cls,
        compiled: CompiledStateGraph[Any, Any, Any, Any],
        dependencies: Dependencies,
        leases: Leases,
    ) -> Self:
        """The entrance to a compiled graph."""
        return cls(dependencies=dependencies, leases=leases, **compiled.__dict__)

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Overrides | None = None,
        stream_mode: Any = None,
        durability: str | None = None,
        checkpoint_during: bool | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Run the graph and stream it as LangGraph does; our events are on the `custom` stream.

        `durability` and `checkpoint_during` are accepted and ignored. Raises InputError,
        BusyThreadError, ConfigurationError or ContinuationError before anything is stored, and
        LeaseLostError when another process has taken the thread from a run that was suspended.
        """
        full = ensure_config(config)
        nested = bool(full.get("configurable", {}).get("checkpoint_ns"))
        admitted = admit(input, nested=nested)
        run = self._claimed(full)
        run.overrides = cast(Overrides, dict(context or {}))
        run.kept = bool(self._saver(full))
        framing = Framing.of(stream_mode or self.stream_mode, options)
        given: Any = admitted.graph_input
        pump: Pump | None = None
        try:
            await take(run.lease, run.id, self._saver(full))
            full = await rewound(self._saver(full), run.dependencies.log, full)
            if admitted.resumes:
                stopped = await self._stopped(run, full)
                given = addressed(given, stopped.interrupts)
                async for frame in self._reopened(run, stopped, framing):
                    yield frame
            source = super().astream(
                given,
                self._config(full, run),
                context=context,
                stream_mode=stream_mode,
                **options,
            )
            pump = Pump(source, run.dependencies.tracing, self._settled(full))
            async with aclosing(pump.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
            if run.refusal is not None:
                await self._forget_refused(run, full)
                raise run.refusal
            told = framing.collect(run)
            if not run.settled:
                await self._interrupted(run, full)
            await thin(self._saver(full), run.lease, run.settings.keep_checkpoints)
            await give_back(run.lease, pump)  # who hears of the end may begin the next run
            for frame in framing.frames(told):
                yield frame
        finally:
            await give_back(run.lease, pump)
            for observed in run.at_end:
                await observed()

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """`astream` for blocking callers; see `background.iterate`."""
        return background.iterate(lambda: self.astream(input, config, **options))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As LangGraph's, but the ledger only grows: raises InputError for removals and edits."""
        snapshot = await self.aget_state(config)
        admitted = admit_update(supersteps, snapshot.values.get("messages", []))
        log, saver = self.dependencies.log, self._saver(config)
        return await super().abulk_update_state(config, await updated(saver, log, config, admitted))

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """`abulk_update_state` for blocking callers."""
        return background.run(lambda: self.abulk_update_state(config, supersteps))

    def rewrite(self, thread: str, messages: Sequence[AnyMessage]) -> None:
        """Replace the stored transcript of a thread, as its owner: `Agent.reset` only.

        Raises BusyThreadError.
        """
        values = {
            "messages": Overwrite(list(messages)),
            "compaction": None,
            "decision": Decision(kind="done"),
        }
        background.run(lambda: self._rewritten(thread, StateUpdate(values, "finish", None)))

    async def _rewritten(self, thread: str, update: StateUpdate) -> None:
        lease = self.leases.claim(thread)
        config: RunnableConfig = {"configurable": {"thread_id": thread, LEASE_KEY: lease}}
        try:
            await take(lease, new_id(), self._saver(config))
            await super().abulk_update_state(config, [[update]])
        finally:
            await give_back(lease)

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """What callers send, not what the entrance makes of it."""
        return schema_of(AgentInput, self.get_name("Input"))

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        return self.get_input_schema(config).model_json_schema()

    @property
    def InputType(self) -> Any:
        return AgentInput

    @property
    def OutputType(self) -> Any:
        return AgentOutput

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return schema_of(AgentOutput, self.get_name("Output"))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """How a notebook shows the graph: as text, without asking any server to draw it."""
        drawing = self.get_graph().draw_mermaid()
        return {"text/plain": drawing, "text/markdown": f"```mermaid\n{drawing}\n```"}

    def _claimed(self, config: RunnableConfig) -> Run:
        """The run that the agent has prepared, or a new one that holds its thread."""
        configurable = config.get("configurable", {})
        prepared = configurable.get(RUN_KEY)
        if isinstance(prepared, Run) and not prepared.entered:
            prepared.entered = True
            return prepared
        thread = str(configurable.get("thread_id") or new_id())
        lease = self.leases.claim(thread, str(configurable.get("checkpoint_ns", "")))
        run = Run.start(lease=lease, dependencies=self.dependencies)
        run.entered = True
        return run

    def _config(self, config: RunnableConfig, run: Run) -> RunnableConfig:
        """The caller's config with what the entrance decides."""
        given = config.get("configurable", {})
        configurable = {**given, "thread_id": run.thread, RUN_KEY: run, LEASE_KEY: run.lease}
        if self._saver(config):
            configurable[DURABILITY_KEY] = "sync"
        return {**config, "configurable": configurable, "recursion_limit": STEPS}

    def _saver(self, config: RunnableConfig) -> Any:
        return config.get("configurable", {}).get(SAVER_KEY, self.checkpointer)

    def _settled(self, config: RunnableConfig) -> Callable[[], Awaitable[None]] | None:
        """What waits until a run that is over has nothing left to write; see `Database.settled`."""
        database = getattr(self._saver(config), "database", None)
        return database.settled if isinstance(database, Database) else None

    async def _stopped(self, run: Run, config: RunnableConfig) -> StateSnapshot:
        """Where the thread's last run was interrupted or killed.

        Raises ContinuationError if there is no such run: all that was begun has ended.
        """
        if not self._saver(config):
            raise _nothing_to_resume(run.thread, "the graph has no checkpointer")
        snapshot = await self.aget_state(self._config(config, run))
        if not snapshot.tasks:
            raise _nothing_to_resume(run.thread, "send a prompt")
        return snapshot

    async def _reopened(
        self, run: Run, stopped: StateSnapshot, framing: Framing
    ) -> AsyncIterator[Any]:
        """The `agent_start` of a run that carries on an interrupted or killed one."""
        record = stopped.values.get("run")
        run.resumed_from = None if record is None else record["id"]
        run.asked_about = asked_about(stopped.interrupts)
        told = framing.collect(run)
        await run.emit(AgentStart(thread=run.thread, resumed_from=run.resumed_from))
        for frame in framing.frames(told):
            yield frame

    async def _interrupted(self, run: Run, config: RunnableConfig) -> None:
        """Tell the `agent_end` of a run that stopped at an interrupt; it can be resumed.

        Raises ConfigurationError where nothing is kept.
        """
        if not self._saver(config):
            raise ConfigurationError(
                "a run was interrupted and could not be resumed: give the graph a checkpointer",
                field="checkpointer",
            )
        snapshot = await self.aget_state(self._config(config, run))
        record, messages = snapshot.values.get("run"), snapshot.values.get("messages", [])
        produced = messages[record["first"] :] if record else []
        await run.emitter.emit(
            AgentEnd(
                thread=run.thread,
                status="interrupted",
                reason="interrupt" if snapshot.interrupts else "breakpoint",
                messages=produced,
                usage=usage_of(produced, record.get("aside") if record else None),
                turns=record["turn"] if record else 0,
                interrupts=[{"id": i.id, "value": i.value} for i in snapshot.interrupts],
            ),
            stored=True,
        )

    async def _forget_refused(self, run: Run, config: RunnableConfig) -> None:
        """Leave nothing of a thread that a refused run would have begun."""
        saver = self._saver(config)
        if not saver or run.lease.namespace:
            return
        values = (await self.aget_state(self._config(config, run))).values
        if "run" not in values and not values.get("messages"):
            await forget(saver, run.thread)


def _nothing_to_resume(thread: str, remedy: str) -> ContinuationError:
    return ContinuationError(f"thread {thread!r} has nothing to resume: {remedy}", thread=thread)
