"""One round: a thread whose workers are killed one after the other, as it was planned.

What is killed when is decided in `plan`; what must hold then is in `invariants`.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.invariants import Record, unfinished, violations
from tests.chaos.plan import Kill
from tests.chaos.processes import Process
from tests.chaos.told import Busy, Ended, Entered, Failed, Found, Queued, Told
from tests.chaos.worker import Entry, Life, live, steer
from tests.chaos.world import World

PATIENCE = 60.0
"""Seconds without a word after which a process is taken for stuck."""

TRIES = 8
"""How many workers may come to their end alive where one was to be killed."""

_STEERED = 0.03
"""How often an event is followed by a message that another process queues."""

_MOST_STEERED = 3
"""How many such messages one worker gets at most: each makes its run longer."""


class Violated(AssertionError):
    """Something does not hold; the message says what, and behind which kill."""


@dataclass
class Tally:
    """What was killed, and what became of it."""

    kills: Counter[str] = field(default_factory=Counter)
    after: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By place: how the run that came behind the kill was begun."""

    facts: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Count another round in."""
        self.kills += other.kills
        self.after += other.after
        self.facts += other.facts


class Round:
    """One worker at a time, and what is known of its thread."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(f"round {world.seed}")
        self._record, self.tally = Record(), Tally()
        self._found = Found()
        self._lives = self._may_queue = self._number = 0
        self._behind = "no kill"
        """What the next worker has to cope with."""

        self._then: Entry = "prompt"
        """How it begins."""

    @staticmethod
    def suited(kills: Sequence[Kill]) -> Sequence[Kill]:
        """Of planned kills, those that a round like this can bring about."""
        return kills

    def play(self, kills: Sequence[Kill]) -> Tally:
        """Kill one worker after the other, and let the last one finish. Raises Violated."""
        with Process(steer, self._world) as self._steering:
            self._queue()
            begun = time.monotonic()
            self._live(Life(self._then))
            horizon = time.monotonic() - begun
            for kill in kills:
                self._kill(kill, horizon)
            self._live(Life(self._then))
            self._live(Life("prompt", runs=0))
        self._finish()
        return self.tally

    def _kill(self, kill: Kill, horizon: float) -> None:
        """Have workers live until one of them dies as planned."""
        for _ in range(TRIES):
            if kill.place == "drain" or self._chance.random() < 0.5:
                self._queue()
            life = Life(self._then, 2, kill.place, kill.passing)
            if self._live(life, None if kill.place else kill.instant * horizon):
                self._behind, self._then = kill.name, kill.then
                self.tally.kills[kill.name] += 1
                return
            kill = kill.sooner()
        raise Violated(f"{TRIES} workers have come to their end and none to {kill.name}")

    def _live(self, life: Life, instant: float | None = None) -> bool:
        """Follow a worker to its end, and kill it after so many seconds; whether it was killed."""
        self._lives, self._may_queue = self._lives + 1, _MOST_STEERED
        with Process(live, self._world, life, f"worker {self._lives}") as worker:
            self._follow(worker, instant)
            return self._was_killed(worker)

    def _was_killed(self, worker: Process) -> bool:
        code = worker.code()
        if code not in (0, -signal.SIGKILL):
            raise Violated(f"a worker ended with {code} behind {self._behind}")
        return code != 0

    def _follow(self, worker: Process, instant: float | None) -> None:
        deadline = None if instant is None else time.monotonic() + instant
        while True:
            left = PATIENCE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                worker.kill()
                deadline, left = None, PATIENCE
            try:
                self._note(worker.hear(left))
            except TimeoutError:
                if deadline is None:
                    raise Violated(f"a worker is stuck behind {self._behind}") from None
            except EOFError:
                return

    def _note(self, said: Any) -> None:
        if isinstance(said, Found):
            self._found = said
            self._hold(violations(said, self._record, self._world.effects()))
        elif isinstance(said, Entered):
            self.tally.after[self._behind, said.way] += 1
            self._behind = "no kill"
        elif isinstance(said, Told):
            self._follow_event(said)
        elif isinstance(said, Queued):
            self._record.queued.append(said)
            self.tally.facts["prompts queued"] += 1
        elif isinstance(said, Ended):
            self._record.ended.append(said)
        elif isinstance(said, Busy):
            raise Violated(f"the thread is still held by a worker that is dead at {self._behind}")
        elif isinstance(said, Failed):
            raise Violated(f"a process failed behind {self._behind}:\n{said.traceback}")

    def _follow_event(self, told: Told) -> None:
        """Remember it, and now and then have a message queued just then."""
        self._record.told.append(told)
        self.tally.facts[told.type] += 1
        if self._may_queue and self._chance.random() < _STEERED:
            self._may_queue -= 1
            self._queue()

    def _queue(self) -> None:
        """Have the other process queue a message, and wait for its word that it is stored."""
        self._number += 1
        message = Queued(self._chance.choice(["steering", "follow_up"]), f"queued {self._number}")
        self._steering.say(message)
        said = self._steering.hear(PATIENCE)
        if said != message:
            raise Violated(f"{message} was not queued: {said}")
        self._record.queued.append(message)

    def _hold(self, found: Sequence[str]) -> None:
        if found:
            raise Violated(f"behind {self._behind}:\n  " + "\n  ".join(found))

    def _finish(self) -> None:
        """Look whether anything was left open, and count what was done."""
        self._hold(unfinished(self._found))
        effects = self._world.effects()
        self.tally.facts += Counter(f"effects of {effect.tool}" for effect in effects)
        self.tally.facts["messages"] += len(self._found.lines)
        self.tally.facts["queued"] += len(self._record.queued)
