"""Plays the runs of a trace again over the real graph, and says of each whether it came out equal.

What stands in for models and tools is in `stand_ins`; nothing is sent and nothing is stored.
"""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loopwright import background
from loopwright.clock import SystemClock
from loopwright.errors import LoopwrightError, TraceFileError
from loopwright.graph.assembly import build
from loopwright.ongoing import OngoingRun
from loopwright.providers.protocol import bounds_answers
from loopwright.replay.comparing import Difference, first_difference, out_of_order
from loopwright.replay.feed import Feed
from loopwright.replay.stand_ins import (
    RecordedClock,
    RecordedModel,
    Stage,
    due,
    recorded_hooks,
    recorded_tool,
)
from loopwright.runs import Dependencies, Run
from loopwright.settings import Settings
from loopwright.state.log import CallbackLog
from loopwright.state.storage import sqlite_storage
from loopwright.telemetry.lines import FIELD_CHARACTERS, Line, Lines
from loopwright.telemetry.reading import RecordedRun, read
from loopwright.telemetry.recording import Recorder
from loopwright.tools.arguments import ArgumentRules
from loopwright.tools.contract import ToolRegistry
from loopwright.wording import Wording

_UNSEEN_HOOKS = ("transform_context", "convert_to_llm")
"""Hooks that change what a model is sent, in ways that a trace does not hold."""


@dataclass(frozen=True)
class Replayed:
    """What became of one recorded run.

    `skipped` says why it could not be played, None if it was. `recorded` and `now` are status and
    reason of both; `difference` is the first step that differs. `notes` say what the comparison
    cannot see. `equal` is None for a run that was skipped.
    """

    run: str
    thread: str
    steps: int
    recorded: str
    now: str = ""
    difference: Difference | None = None
    skipped: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool | None:
        """Whether every compared step came out as it was recorded."""
        return None if self.skipped else self.difference is None


def replay(path: str | Path, run: str | None = None) -> list[Replayed]:
    """Replay the runs of a trace file in their order, or the one whose id begins with `run`.

    Runs of one thread go on from one another, as they did. Raises TraceFileError for a file that
    cannot be read or has no such run, and for lines that do not hold what a replay needs.
    """
    return background.run(lambda: areplay(path, run))


async def areplay(path: str | Path, run: str | None = None) -> list[Replayed]:
    """`replay` for the event loop."""
    trace = await asyncio.to_thread(read, path)
    wanted = [one for one in trace.runs if one.run.startswith(run or "")]
    if not wanted:
        raise TraceFileError(trace.path, f"it has no run {run!r}")
    threads: dict[str, _Thread] = {}
    try:
        done = [await _replayed(one, threads) for one in trace.runs[: _last(trace.runs, wanted)]]
    finally:
        for thread in threads.values():
            thread.storage.close()
    return [one for one in done if one.run in {w.run for w in wanted}]


def _last(runs: list[RecordedRun], wanted: list[RecordedRun]) -> int:
    return runs.index(wanted[-1]) + 1


class _Thread:
    """A thread that is played: its storage in memory, and the last run that came out equal."""

    def __init__(self) -> None:
        self.storage = sqlite_storage(None)
        self.stage: Stage | None = None
        self.left_by: str | None = None
        self.log = CallbackLog(
            {"steering": lambda: self._due("steering"), "follow_up": lambda: self._due("follow_up")}
        )

    def _due(self, queue: str) -> Any:
        return due(self.stage, queue) if self.stage else []


async def _replayed(recorded: RecordedRun, threads: dict[str, _Thread]) -> Replayed:
    end = recorded.end or {"status": "unfinished", "reason": "its end is not recorded"}
    told = f"{end.get('status')} ({end.get('reason')})"
    known = Replayed(recorded.run, recorded.thread, len(recorded.lines), told)
    moved = out_of_order(recorded.lines, recorded.places)
    if moved is not None:
        return _changed(known, difference=moved)
    feed = Feed(recorded)
    thread, reason = _thread_for(feed, threads)
    if thread is None:
        return _changed(known, skipped=reason)
    thread.stage, thread.left_by = Stage(feed), None
    now = await _play(thread, thread.stage)
    hooks = [name for name in feed.beginning.get("hooks") or [] if name in _UNSEEN_HOOKS]
    difference = first_difference(
        recorded.lines,
        recorded.places,
        thread.stage.played,
        requests=not hooks,
        whole=not feed.ended_early,
    )
    thread.left_by = recorded.run if difference is None else None
    return _changed(known, now=now, difference=difference, notes=_notes(recorded, hooks))


def _changed(known: Replayed, **changes: Any) -> Replayed:
    return Replayed(**{**vars(known), **changes})


def _thread_for(feed: Feed, threads: dict[str, _Thread]) -> tuple[_Thread | None, str]:
    """The thread as the run found it; None, with the reason, if that is not known."""
    name, after = feed.recorded.thread, feed.beginning.get("after")
    if after is not None:
        known = threads.get(name)
        if known is not None and known.left_by == after:
            return known, ""
        return None, f"it goes on from run {after}, which was not replayed as it was recorded"
    if not feed.requests and feed.ended_early:
        return None, "it was cut off before it asked a model"
    if "history" not in feed.beginning:
        return None, "it carries on an interrupted or killed run in the midst of a step"
    if name in threads:
        threads[name].storage.close()
    threads[name] = _Thread()
    return threads[name], ""


async def _play(thread: _Thread, stage: Stage) -> str:
    """Run it; gives status and reason."""
    graph = build(
        _dependencies(thread, stage),
        checkpointer=thread.storage.checkpointer,
        leases=thread.storage.leases,
    )
    recorded = stage.feed.recorded
    run = Run.start(lease=graph.leases.claim(recorded.thread), dependencies=graph.dependencies)
    stage.signal = run.signal
    run.plan = stage.feed.beginning.get("plan")
    if "history" in stage.feed.beginning:
        rows = stage.feed.given(stage.feed.beginning, "history", list)
        run.transcript = stage.feed.messages(stage.feed.beginning, rows)
    prompts = stage.feed.prompts
    given = {"messages": prompts} if prompts else {"continue": True}
    try:
        result = await OngoingRun(graph, run, given)
    except LoopwrightError as error:
        return f"did not begin ({error})"
    return f"{result.status} ({result.reason})"


def _settings(feed: Feed) -> Settings:
    """The recorded settings; what they ask of the pieces of an answer cannot be asked again."""
    settings = Settings.from_json(feed.given(feed.beginning, "settings", dict))
    unbounded = replace(settings.limits, chunks=None, text=None, blocks=None)
    return replace(settings, protocol="lenient", limits=unbounded)


def _dependencies(thread: _Thread, stage: Stage) -> Dependencies:
    feed, beginning = stage.feed, stage.feed.beginning
    limits = feed.given(beginning, "limits", dict)
    characters = int(limits.get("field", FIELD_CHARACTERS))

    def observe(run: Run) -> None:
        Recorder.watch(run, [Lines(stage.write, characters=characters)], SystemClock())

    prompt = beginning.get("system_prompt")
    if prompt is None and feed.requests:
        prompt = feed.requests[0].get("system_prompt")
    model = RecordedModel(stage)
    try:
        return Dependencies(
            resolve=lambda name: model,
            tools=ToolRegistry(
                tuple(recorded_tool(tool, stage) for tool in feed.given(beginning, "tools", list))
            ),
            system_prompt=prompt,
            settings=_settings(feed),
            clock=RecordedClock(stage),
            hooks=recorded_hooks(stage),
            log=thread.log,
            argument_rules=ArgumentRules(**beginning.get("argument_rules", {})),
            wording=Wording(**beginning.get("wording", {})),
            observers=(observe,),
        )
    except (TypeError, AttributeError) as error:
        raise feed.unusable(f"its first line is not as this version writes it: {error}") from error


def _notes(recorded: RecordedRun, hooks: list[str]) -> tuple[str, ...]:
    """What equal does not say of this run."""
    notes = [
        f"step {line['step']}: {', '.join(line['cut'])} was cut when it was recorded; "
        "what was cut is not compared"
        for line in recorded.lines
        if line.get("cut")
    ]
    beginning: Line = recorded.beginning or {}
    settings = Settings.from_json(beginning.get("settings") or {})
    if bounds_answers(settings):
        notes.append("a trace has no pieces of answers: their protocol is not checked again")
    if beginning.get("tree"):
        notes.append("the run shared the wallet of another one, which is not replayed with it")
    if hooks:
        notes.append(f"requests are not compared: the run had {' and '.join(hooks)}")
    if recorded.end is None:
        notes.append("the recorded run has no end; it is compared up to its last answer or result")
    return tuple(notes)
