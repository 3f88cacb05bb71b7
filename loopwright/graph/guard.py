"""The guard around every node: it turns a step into a LangGraph node and a fault into a decision.

It is the only writer of the ledger. What a step does is its node's; where it leads is the edges'.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import adispatch_custom_event
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from loopwright.errors import StateError
from loopwright.events import AnyEvent, to_json
from loopwright.graph.direct import listeners
from loopwright.runs import Run, Update, changed, opened
from loopwright.settings import Settings
from loopwright.spending import added
from loopwright.state.ids import Ids
from loopwright.state.schema import AgentState, Decision, RunRecord
from loopwright.state.view import whole_ledger

RUN_KEY = "__loopwright_run"
"""Where the entrance puts the run in the config. Keys with two underscores are never stored."""

Step = Callable[[AgentState, Run], Awaitable[Update]]
Node = Callable[..., Awaitable[dict[str, Any]]]


def guarded(step: Step) -> Node:
    """The step as a node: an exception becomes decision `fault`, and what was appended is kept.

    Interrupts and cancellations pass through.
    """

    async def node(
        state: AgentState, config: RunnableConfig, runtime: Runtime[Any]
    ) -> dict[str, Any]:
        run = _entered(state, config, runtime)
        try:
            update = await step(state, run)
        except GraphBubbleUp:
            raise
        except Exception as error:  # the guard: a raising node would lose its messages
            update = {"decision": _fault(error)}
        return _committed(state, run, update)

    return node


def unguarded(step: Step) -> Node:
    """The step as a node whose exceptions reach the caller: for `fail`, the end of all faults."""

    async def node(
        state: AgentState, config: RunnableConfig, runtime: Runtime[Any]
    ) -> dict[str, Any]:
        run = _entered(state, config, runtime)
        return _committed(state, run, await step(state, run))

    return node


def _entered(state: AgentState, config: RunnableConfig, runtime: Runtime[Any]) -> Run:
    """The run of this config, connected to this node's stream and up to date with the state."""
    run = config.get("configurable", {}).get(RUN_KEY)
    if not isinstance(run, Run):
        raise StateError("this graph was run around its entrance: call its own methods")
    run.appended, run.rewritten, run.cursor, run.aside = [], None, None, None
    run.store = runtime.store
    run.emitter.write = run.sink or runtime.stream_writer
    run.emitter.dispatch = _callback_dispatch(config)
    run.emitter.release()  # this node runs, so what the steps before have added is committed
    if run.ids is None and "settings" in state:
        run.ids = Ids.of(state["messages"])
        run.settings = Settings.from_json(state["settings"])
    return run


def _callback_dispatch(config: RunnableConfig) -> Callable[[AnyEvent], Awaitable[None]] | None:
    """How events reach callback handlers (`astream_events`), if any of them listens."""
    handlers = listeners(config)
    deaf = (BaseCallbackHandler.on_custom_event, AsyncCallbackHandler.on_custom_event)
    if all(type(handler).on_custom_event in deaf for handler in handlers):
        return None

    async def dispatch(event: AnyEvent) -> None:
        await adispatch_custom_event(event.type, to_json(event), config=config)

    return dispatch


def _fault(error: Exception) -> Decision:
    text = str(error) or type(error).__name__
    return Decision(kind="fault", error={"kind": type(error).__name__, "message": text})


def _committed(state: AgentState, run: Run, update: Update) -> dict[str, Any]:
    """The writes of a step: the appended messages, its own channels, and the run's counters."""
    written = dict(update)
    before: list[AnyMessage] = state.get("messages", [])
    if run.rewritten is not None:
        before = run.rewritten
        written["messages"] = Overwrite([*before, *run.appended])
    elif run.appended:
        written["messages"] = run.appended
    if run.cursor is not None:
        written["cursor"] = run.cursor
    tail = [*before[-1:], *run.appended]
    written["decision"] = {**written["decision"], "about": tail[-1].id if tail else None}
    record: RunRecord | None = written.get("run") or state.get("run")
    if written["decision"]["kind"] == "fault" and not _is_open(record, run):
        record = opened(run, len(before))
        written.setdefault("settings", run.settings.to_json())
        written.setdefault("view", state.get("view") or whole_ledger())
    if record is not None and written["decision"]["kind"] != "refused":
        written["run"] = changed(record, id=run.id, sequence=run.emitter.sequence)
    _count_aside(state, run, written)
    run.settled = written["decision"]["kind"] in ("done", "refused")
    run.appended = []
    return written


def _count_aside(state: AgentState, run: Run, written: dict[str, Any]) -> None:
    """Add what the step has used beside its answers to the totals of the run and the thread."""
    if run.aside is None:
        return
    written["usage"] = added(written.get("usage") or state.get("usage") or {}, run.aside)
    if "run" in written:
        before = written["run"].get("aside") or {}
        written["run"] = changed(written["run"], aside=added(before, run.aside))


def _is_open(record: RunRecord | None, run: Run) -> bool:
    """Whether `load` has written this record for the run, or for the one that it carries on."""
    if record is None or record["status"] == "ended":
        return False
    return record["id"] in (run.id, run.resumed_from)
