"""A state and a run as a node sees them, for tests that call one node by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AnyMessage

from loopwright.events import AnyEvent
from loopwright.runs import Dependencies, Run
from loopwright.settings import Settings
from loopwright.state.ids import Ids
from loopwright.state.lease import Leases
from loopwright.state.schema import AgentState, Cursor, Decision, RunRecord
from loopwright.state.view import whole_ledger
from loopwright.tools.registry import registry
from tests.support.providers import Scripted, ScriptedProvider


@dataclass(frozen=True)
class Recorder:
    """A view that keeps every event."""

    events: list[AnyEvent] = field(default_factory=list)

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """It shows events only."""

    def apply(self, event: AnyEvent) -> None:
        self.events.append(event)


@dataclass(frozen=True)
class Scene:
    """A run, the provider it asks and the events it has told."""

    run: Run
    provider: ScriptedProvider
    events: list[AnyEvent]


def scene(
    *script: Scripted,
    messages: Sequence[AnyMessage] = (),
    tools: Sequence[Any] = (),
    window: int | None = None,
    settings: Settings | None = None,
    **dependencies: Any,
) -> Scene:
    """A run on thread `t` whose ledger holds these messages."""
    provider = ScriptedProvider(*script, window=window)
    parts = Dependencies(
        resolve=lambda name: provider,
        tools=registry(tools),
        settings=settings or Settings(),
        **dependencies,
    )
    recorder = Recorder()
    run = Run.start(lease=Leases().claim("t"), dependencies=parts, views=[recorder])
    run.settings, run.ids = parts.settings, Ids.of(list(messages))
    return Scene(run, provider, recorder.events)


def state(
    messages: Sequence[AnyMessage] = (), kind: str = "opening", **channels: Any
) -> AgentState:
    """A state with these messages and this decision about the last of them."""
    ledger = list(messages)
    made = {
        "messages": ledger,
        "decision": Decision(kind=cast(Any, kind), about=ledger[-1].id if ledger else None),
        "run": record(),
        "settings": Settings().to_json(),
        "system_prompt": "",
        "view": whole_ledger(),
        "cursor": Cursor(steering=0, follow_up=0),
        **channels,
    }
    return cast(AgentState, made)


def record(**fields: Any) -> RunRecord:
    """The record of a run in its first turn."""
    made = {
        "id": "run",
        "resumed_from": None,
        "status": "running",
        "sequence": 0,
        "turn": 1,
        "first": 0,
        "overflow": False,
        **fields,
    }
    return cast(RunRecord, made)
