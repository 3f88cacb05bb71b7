"""Two workers at a time want the same thread: one has it, and when that one is killed, the other.

What a round with one worker at a time is lives in `round`.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import get_args

from loopwright.queueing import WhenBusy
from tests.chaos.plan import Kill
from tests.chaos.processes import Process
from tests.chaos.round import PATIENCE, TRIES, Round, Tally, Violated
from tests.chaos.told import Busy, Entered, Found, Told
from tests.chaos.worker import Life, live, steer

RUNS = 3
"""Of a worker that nobody kills; more than one, so that the two meet in between as well."""

_LONGEST = 0.5
"""Seconds within which a worker is killed that dies at any instant."""

_AGAIN = 0.05
"""Seconds without a word after which whoever was refused tries again."""


@dataclass(eq=False)
class Worker:
    """One of the two, and how it is to die."""

    process: Process
    kill: Kill
    begun: float = field(default_factory=time.monotonic)
    refused: bool = False
    """It waits for a word, because the other one has the thread."""

    @property
    def left(self) -> float:
        """Seconds until it is to be killed from outside."""
        instant = PATIENCE if self.kill.place else self.kill.instant * _LONGEST
        return self.begun + instant - time.monotonic()

    def again(self) -> None:
        """Let it try again, if it was refused."""
        if self.refused:
            self.refused = False
            self.process.say("again")


class Duel(Round):
    """Two workers at a time, who want the same thread."""

    @staticmethod
    def suited(kills: Sequence[Kill]) -> Sequence[Kill]:
        """No kill in a repair: which of the two comes behind a kill is not known before."""
        return [kill for kill in kills if kill.place != "repair"]

    def play(self, kills: Sequence[Kill]) -> Tally:
        """Kill one of the two, start another one, and so on. Raises Violated."""
        self._kills, self._workers = deque(kills), list[Worker]()
        allowed = TRIES * len(kills)
        with Process(steer, self._world) as self._steering:
            try:
                while self._kills or self._workers:
                    while self._kills and len(self._workers) < 2:
                        self._begin(self._kills.popleft())
                        if self._lives > allowed:
                            raise Violated(f"{allowed} workers and {self._kills} left")
                    self._listen()
            finally:
                for worker in self._workers:
                    worker.process.kill()
            self._live(Life("resume"))
            self._live(Life("prompt", runs=0))
        self._finish()
        return self.tally

    def _begin(self, kill: Kill) -> None:
        if kill.place == "drain":
            self._queue()
        self._lives, self._may_queue = self._lives + 1, 2
        when_busy = self._chance.choice(get_args(WhenBusy))
        life = Life(kill.then, RUNS, kill.place, kill.passing, when_busy)
        process = Process(live, self._world, life, f"worker {self._lives}")
        self._workers.append(Worker(process, kill))

    def _listen(self) -> None:
        """Hear what the two say next, and kill the one whose time has come."""
        pipes = {worker.process.connection: worker for worker in self._workers}
        first = min(worker.left for worker in self._workers)
        ready = wait(list(pipes), max(0.0, min(first, _AGAIN)))
        for worker in self._workers:
            if worker.left <= 0:
                if worker.kill.place:
                    raise Violated(f"a worker that was to die at {worker.kill.name} is stuck")
                worker.process.kill()
        for pipe, worker in pipes.items():
            if pipe in ready:
                self._hear(worker)
        if not ready:
            self._let_in()

    def _hear(self, worker: Worker) -> None:
        try:
            said = worker.process.hear(PATIENCE)
        except EOFError:
            self._bury(worker)
            return
        if isinstance(said, Busy):
            worker.refused = True
            self.tally.facts["refused"] += 1
        elif not isinstance(said, Found | Entered):
            self._note(said)
        if isinstance(said, Told) and said.type in ("turn_end", "agent_end"):
            self._let_in()

    def _let_in(self) -> None:
        for worker in self._workers:
            worker.again()

    def _bury(self, worker: Worker) -> None:
        """One is gone: killed as planned, or it has come to its end and another one dies so."""
        self._workers.remove(worker)
        if self._was_killed(worker.process):
            self.tally.kills[worker.kill.name] += 1
        else:
            self._kills.append(worker.kill.sooner())
        self._let_in()
