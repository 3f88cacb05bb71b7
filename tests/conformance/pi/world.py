"""What all parts of a played scenario share: the trace that is written, gates, time, triggers.

Who writes what into the trace is the parts' business; nothing here knows an agent.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.pi.shorthand import Json

UNIT = 1.0
"""Seconds of virtual time in one unit of a scenario."""

Action = Callable[[Json], Awaitable[None]]


class Scripted(Exception):
    """An error that the scenario asks for; its text is the scenario's."""


@dataclass
class Rule:
    """A trigger of the scenario: when it applies, what is done then, how often it has matched."""

    when: Json
    actions: list[Json]
    matches: int = 0

    def applies(self, kind: str, value: Any, attributes: Json) -> bool:
        """Count a happening, and say whether this is the one that the rule waits for."""
        if self.when.get(kind) != value:
            return False
        filters = self.when.keys() - {kind, "n", "every"}
        if any(attributes.get(name) != self.when[name] for name in filters):
            return False
        self.matches += 1
        return bool(self.when.get("every")) or self.matches == self.when.get("n", 1)


@dataclass
class World:
    """One played scenario and its trace so far, in the form of the goldens."""

    scenario: Json
    log: list[str] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    tool_runs: list[Json] = field(default_factory=list)
    hooks: list[Json] = field(default_factory=list)
    steps: list[Json] = field(default_factory=list)
    hook_calls: Counter[str] = field(default_factory=Counter)
    tasks: list["asyncio.Future[Any]"] = field(default_factory=list)
    """What goes on by itself: it ends with the scenario at the latest."""

    faults_before_request: int = 0
    """How often a hook of the model node has kept it from sending its request."""

    seams: set[tuple[str, int]] = field(default_factory=set)
    """Run and number of the events that are there only because a driver interrupts and resumes."""

    act: Action | None = None
    """Does one action of the scenario; set by the host that is played on."""

    def __post_init__(self) -> None:
        rules = self.scenario.get("on", [])
        self._rules = [Rule(rule["when"], rule["do"]) for rule in rules]
        self._gates: dict[str, asyncio.Event] = {}

    def gate(self, name: str) -> asyncio.Event:
        """The gate of this name, closed until something opens it."""
        return self._gates.setdefault(name, asyncio.Event())

    async def fire(self, kind: str, value: Any, **attributes: Any) -> None:
        """Something happened: do what the scenario's triggers say about it, in their order."""
        for rule in self._rules:
            if rule.applies(kind, value, attributes):
                for action in rule.actions:
                    await self.perform(action)

    async def perform(self, action: Json) -> None:
        """Do one action."""
        assert self.act is not None, "the world has no host yet"
        await self.act(action)

    def later(self, work: Awaitable[Any]) -> None:
        """Let something go on by itself until the scenario ends."""
        self.tasks.append(asyncio.ensure_future(work))


async def units(count: float) -> None:
    """Let so many units of virtual time pass."""
    await asyncio.sleep(count * UNIT)


def compact(value: Any) -> str:
    """JSON as the traces write it: no blanks, sorted keys, whole numbers without a point."""
    return json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
