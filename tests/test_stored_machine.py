"""Whatever is forked, rewound, deleted, pruned, exported and imported: a plain list agrees.

The agent may be opened anew at any time; at the end nothing is wrong with the file, and when all
threads are deleted it is empty.
"""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from loopwright import Agent
from loopwright.state.doctor import examine
from loopwright.testing import Response, ScriptedModel
from tests.support.savers import count

WHICH = st.integers(0, 99)
TABLES = (
    "checkpoints",
    "writes",
    "loopwright_branches",
    "loopwright_rows",
    "loopwright_values",
    "loopwright_log",
)


@dataclass
class Thread:
    """What a thread should be: its texts, what waits for it, and its texts at each moment."""

    texts: list[str] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)
    past: dict[str, list[str]] = field(default_factory=dict)


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class StoredThreads(RuleBasedStateMachine):
    """Plain lists beside an agent over a file."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name, "t.db")
        self.threads: dict[str, Thread] = {}
        self.number = 0
        self.agent = self.opened()

    def opened(self) -> Agent:
        return Agent(ScriptedModel(["ok"] * 1000), [look], database=self.path, thread="own")

    @rule()
    def reopen(self) -> None:
        self.agent.close()
        self.agent = self.opened()

    def fresh(self) -> str:
        self.number += 1
        return f"t{self.number}"

    def named(self, which: int) -> tuple[str, Thread]:
        names = sorted(self.threads)
        name = names[which % len(names)]
        return name, self.threads[name]

    @rule(which=WHICH, new=st.booleans(), calls=st.booleans())
    def prompt(self, which: int, new: bool, calls: bool) -> None:
        """A run: each waiting message is taken in before an answer."""
        if new or not self.threads:
            self.threads[self.fresh()] = Thread()
            which = sorted(self.threads).index(f"t{self.number}")
        name, thread = self.named(which)
        self.number += 1
        said = [f"prompt {self.number}"]
        if calls:
            model: Any = [
                Response(calls=[(f"c{self.number}", "look", {"at": "it"})]),
                *["ok"] * 50,
            ]
            self.agent.model = ScriptedModel(model)
        first = thread.queue[:1]
        rest = thread.queue[1:]
        said += first
        if calls:
            said += ["", "saw it", *rest[:1]]
            rest = rest[1:]
        said += ["ok", *(text for waiting in rest for text in (waiting, "ok"))]
        self.answer(thread)
        self.agent.run(f"prompt {self.number}", thread=name)
        self.agent.model = ScriptedModel(["ok"] * 1000)
        thread.texts += said
        thread.queue = []
        self.see(name)

    @staticmethod
    def answer(thread: Thread) -> None:
        """A call that is open has its result in the journal, wherever the thread came from."""
        if thread.texts[-1:] == [""]:
            thread.texts.append("saw it")

    def see(self, name: str) -> None:
        """Remember each new moment: the transcript only grew since the last one that was seen."""
        thread = self.threads[name]
        for moment in self.agent.history(name):
            thread.past.setdefault(moment.id, thread.texts[: moment.messages])

    @precondition(lambda self: self.threads)
    @rule(which=WHICH)
    def steer(self, which: int) -> None:
        name, thread = self.named(which)
        self.number += 1
        thread.queue.append(f"steer {self.number}")
        self.agent.steer(f"steer {self.number}", thread=name)

    @precondition(lambda self: self.threads)
    @rule(which=WHICH, at=WHICH)
    def fork(self, which: int, at: int) -> None:
        name, thread = self.named(which)
        history = self.agent.history(name)
        moment = history[at % len(history)]
        fork = self.agent.fork(name, moment, name=self.fresh())
        self.threads[fork] = Thread(list(thread.past[moment.id]))
        self.see(fork)

    @precondition(lambda self: self.threads)
    @rule(which=WHICH, at=WHICH)
    def rewind(self, which: int, at: int) -> None:
        name, thread = self.named(which)
        history = self.agent.history(name)
        moment = history[at % len(history)]
        self.agent.rewind(name, at=moment)
        if at % len(history):
            thread.texts, thread.queue = list(thread.past[moment.id]), []
        self.see(name)

    @precondition(lambda self: self.threads)
    @rule(which=WHICH, keep=st.integers(1, 9))
    def prune(self, which: int, keep: int) -> None:
        name, _ = self.named(which)
        before = self.agent.history(name)
        self.agent.prune(name, keep=keep)
        assert self.agent.history(name) == before[:keep]

    @precondition(lambda self: self.threads)
    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        name, _ = self.named(which)
        self.agent.delete(name)
        del self.threads[name]

    @precondition(lambda self: self.threads)
    @rule(which=WHICH)
    def export_and_import(self, which: int) -> None:
        name, thread = self.named(which)
        file = Path(self.folder.name, "t.jsonl")
        self.agent.export(name, file)
        done = self.agent.import_(file, name=self.fresh())
        new = Thread(list(thread.texts), list(thread.queue))
        self.answer(new)
        assert sum(done.repaired.values()) == len(new.texts) - len(thread.texts)
        self.threads[done.thread] = new
        self.see(done.thread)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "threads"):
            return
        assert {info.id for info in self.agent.threads()} == set(self.threads)
        for name, thread in self.threads.items():
            waiting = [m.text for m in self.agent.queued("steering", thread=name)]
            assert waiting == thread.queue
            assert [m.text for m in self.agent.messages(name)] == thread.texts

    @precondition(lambda self: self.threads)
    @rule(which=WHICH)
    def look_back(self, which: int) -> None:
        """The transcript of each moment is what it was."""
        name, thread = self.named(which)
        for moment in self.agent.history(name):
            texts = [m.text for m in self.agent.messages(name, at=moment)]
            assert texts == thread.past[moment.id]

    def teardown(self) -> None:
        if not hasattr(self, "threads"):
            return
        self.agent.close()
        if self.path.exists():
            assert examine(self.path).findings == []
            with self.opened() as agent:
                for name in self.threads:
                    agent.delete(name)
            assert [count(self.path, table) for table in TABLES] == [0] * len(TABLES)
        self.folder.cleanup()


TestStoredThreads = StoredThreads.TestCase
TestStoredThreads.settings = settings(
    max_examples=10,
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
