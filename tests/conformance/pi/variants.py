"""The four ways a scenario is played: two checkpointers, straight and interrupted at every node.

Also the witness that the events came out of the compiled graph.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AnyMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from loopwright.events import AgentEnd, AgentStart, AnyEvent
from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.graph.guard import RUN_KEY
from loopwright.runs import Run
from tests.conformance.pi.shorthand import Json
from tests.conformance.pi.world import World


@dataclass(frozen=True)
class Variant:
    """A checkpointer, and whether the run is interrupted before every node and resumed."""

    name: str
    is_stored: bool
    is_interrupted: bool

    @contextmanager
    def storage(self) -> Iterator[Json]:
        """What an agent is given to keep its thread in."""
        if not self.is_stored:
            yield {"checkpointer": InMemorySaver()}
            return
        with TemporaryDirectory(prefix="loopwright-pi-") as folder:
            yield {"database": Path(folder) / "threads.db"}


VARIANTS = (
    Variant("memory", False, False),
    Variant("sqlite", True, False),
    Variant("memory, interrupted", False, True),
    Variant("sqlite, interrupted", True, True),
)


class Interrupted(AgentGraph):
    """A graph that stops before every node and goes on in a new run of a newly built graph."""

    seams: "Seams"

    @classmethod
    def around(cls, graph: AgentGraph, world: World) -> "Interrupted":
        """The same graph, run in pieces."""
        made = cls(**graph.__dict__)
        made.seams = Seams(world)
        return made

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        run: Run = config["configurable"][RUN_KEY]
        given = input
        run.emitter.views.append(self.seams)
        while True:
            saver = cast(BaseCheckpointSaver[Any], self.checkpointer)
            graph = build(run.dependencies, checkpointer=saver, leases=self.leases)
            configured: Any = {"configurable": {**config["configurable"], RUN_KEY: run}}
            async for chunk in graph.astream(given, configured, interrupt_before="*", **options):
                yield chunk
            if not self.seams.at_one:
                return
            given, run = None, self._next(run)

    def _next(self, run: Run) -> Run:
        """A run that shares with the one before only what is not stored."""
        follower = Run.start(
            lease=self.leases.claim(run.thread, signal=run.signal),
            dependencies=run.dependencies,
            views=run.emitter.views,
        )
        follower.sink, follower.transcript = run.sink, run.transcript
        self.seams.resumes(follower)
        return follower


class Seams:
    """A view that notes the events which are there only because of the interruptions."""

    def __init__(self, world: World) -> None:
        self._noted = world.seams
        self._resumed: set[str] = set()
        self.at_one = False
        """Whether the last event is there only because of the interruptions."""

    def resumes(self, run: Run) -> None:
        """The next run begins with such an event."""
        self._resumed.add(run.id)

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """Nothing is shown here."""

    def apply(self, event: AnyEvent) -> None:
        stopped = isinstance(event, AgentEnd) and event.status == "interrupted"
        self.at_one = stopped or (isinstance(event, AgentStart) and event.run_id in self._resumed)
        if self.at_one:
            self._resumed.discard(event.run_id)
            self._noted.add((event.run_id, event.sequence))


class Witness(AsyncCallbackHandler):
    """Counts how often LangGraph entered the node `model`, in whatever graph of this context."""

    def __init__(self) -> None:
        self.model_visits = 0

    async def on_chain_start(
        self, serialized: Any, inputs: Any, *, name: str | None = None, **details: Any
    ) -> None:
        metadata = details.get("metadata") or {}
        if name == "model" and metadata.get("langgraph_node") == "model":
            self.model_visits += 1


_witness: ContextVar[Witness | None] = ContextVar("loopwright_pi_witness", default=None)
register_configure_hook(_witness, inheritable=True)


@contextmanager
def witnessed() -> Iterator[Witness]:
    """A witness of all graphs that are run inside."""
    witness = Witness()
    token = _witness.set(witness)
    try:
        yield witness
    finally:
        _witness.reset(token)
