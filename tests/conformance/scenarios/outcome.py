"""Runs a script from a fresh file to its end, and looks at what is stored, told and still waiting.

What of it is right is said by `checking`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright import LoopwrightError, Settings, UnknownThreadError
from loopwright.settings import Limits
from loopwright.state.messages import calls
from tests.conformance.scenarios.killing import killed
from tests.conformance.scenarios.playing import play
from tests.conformance.scenarios.record import Record
from tests.conformance.scenarios.stage import THREAD, Stage
from tests.conformance.scenarios.words import Step, parts

AGAIN = "Are you still there?"
PATIENCE = 5.0
"""Seconds in which a write to the database is over on any machine."""


@dataclass(frozen=True)
class Outcome:
    """What a script came to, and what a prompt to the same thread came to after it."""

    record: Record
    ledger: list[AnyMessage]
    waiting: list[str]
    """The texts that are still queued."""

    statuses: list[tuple[str, str]]
    """Run id and status of every outcome that was told or stored, oldest first."""

    tasks_left: list[str]
    seconds: float
    """How long it took from the cancel to the end of its run."""

    later: str
    """The status of the run after the script, or what was raised instead."""

    later_ledger: list[AnyMessage]
    faulty: list[str]
    """What was wrong with any request, the ones of that later run included."""

    @property
    def last(self) -> dict[str, str]:
        """How the script's last run ended; empty if none has ended."""
        return self.record.ended[-1] if self.record.ended else {}

    @property
    def delivered(self) -> list[str]:
        """The user texts in the ledger, in order."""
        return _user_texts(self.ledger)

    @property
    def delivered_later(self) -> list[str]:
        """The same behind the prompt after the script."""
        return _user_texts(self.later_ledger)

    @property
    def words(self) -> list[str]:
        """The ledger as words: texts of users and answers, and ids of calls, in order."""
        found: list[str] = []
        for message in self.ledger:
            if not isinstance(message, ToolMessage):
                found += [call.id for call in calls(message)]
                found += [str(message.text)] if message.text else []
        return found

    @property
    def answer(self) -> AIMessage | None:
        """The last assistant message in the ledger."""
        return next((m for m in reversed(self.ledger) if isinstance(m, AIMessage)), None)


def _user_texts(ledger: Sequence[AnyMessage]) -> list[str]:
    return [str(m.text) for m in ledger if isinstance(m, HumanMessage)]


async def run(script: Sequence[Step], policies: dict[str, Any]) -> Outcome:
    """Play the script on a file of its own. Raises StuckError."""
    settings = _with_first_limit(Settings.from_json(policies), script)
    before = Record()
    with TemporaryDirectory() as folder:
        database = Path(folder, "threads.db")
        *dead, last = parts(list(script))
        for part in dead:
            after = await killed(database, settings, part)
            after.add(before)
            before = after
        tasks = asyncio.all_tasks()
        stage = Stage(database, settings)
        async with stage.agent, stage:
            await play(stage, last)
            await stage.finish()
            stage.record.add(before)
            return await _seen(stage, tasks)


def _with_first_limit(settings: Settings, script: Sequence[Step]) -> Settings:
    """A limit that a script names counts from its beginning: a run is frozen when it begins."""
    turns = [int(step.text) for step in script if step.kind == "max_turns"]
    return replace(settings, limits=Limits(turns=turns[0])) if turns else settings


async def _seen(stage: Stage, tasks: "set[asyncio.Task[Any]]") -> Outcome:
    record = Record(**stage.record.to_json())  # as it is now: a prompt follows
    left = await _left(tasks)
    waiting = [*stage.agent.queued("steering"), *stage.agent.queued("follow_up")]
    ledger = _ledger(stage)
    later = await _again(stage)
    return Outcome(
        record=record,
        ledger=ledger,
        waiting=[str(message.text) for message in waiting],
        statuses=[*((end["run_id"], end["status"]) for end in record.ended), *_stored(stage)],
        tasks_left=[repr(task) for task in left],
        seconds=stage.settled - stage.cancelled if stage.cancelled else 0.0,
        later=later,
        later_ledger=_ledger(stage),
        faulty=stage.record.faulty,
    )


async def _left(before: "set[asyncio.Task[Any]]") -> "set[asyncio.Task[Any]]":
    """The tasks that stay. What is being written when a run is cut off is written to its end."""
    new = asyncio.all_tasks() - before
    return (await asyncio.wait(new, timeout=PATIENCE))[1] if new else new


async def _again(stage: Stage) -> str:
    """What a prompt to the same thread comes to, with room for all that is queued."""
    stage.free = True
    stage.agent.settings = replace(stage.agent.settings, limits=Limits())
    try:
        return (await stage.agent.prompt(AGAIN)).status
    except LoopwrightError as error:
        return f"{type(error).__name__}: {error}"


def _ledger(stage: Stage) -> list[AnyMessage]:
    try:
        return stage.agent.messages()
    except UnknownThreadError:
        return []


def _stored(stage: Stage) -> list[tuple[str, str]]:
    """The outcomes in the thread's checkpoints, oldest first."""
    config: Any = {"configurable": {"thread_id": THREAD}}
    results = [s.values.get("result") for s in stage.agent.graph.get_state_history(config)]
    return [(r["run_id"], r["status"]) for r in reversed(results) if r]
