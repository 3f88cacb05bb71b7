"""Whatever is put, forked, rewritten, edited, copied and deleted: every read is the memory saver's.

Two savers work on one file as two processes do, and each may be opened anew at any time.
"""

import copy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database

THREADS, NAMESPACES = ("a", "b"), ("", "inner")
ELEMENTS = st.one_of(
    st.builds(lambda n: {"n": n, "text": "x" * 40 * n}, st.integers(4, 9)),
    st.sampled_from([None, b"bytes", "text", 1, True]),
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=9), st.just("long " * 400)
)
PLACES = st.sampled_from([*[("a", "")] * 4, ("a", "inner"), ("b", ""), ("b", "inner")])
SAVERS = st.integers(0, 1)


@dataclass
class Change:
    """What a superstep does to the state."""

    lost: int
    edit: bool
    new: list[Any]
    other: Any


CHANGES = st.builds(
    Change,
    lost=st.sampled_from([0, 0, 0, 0, 1, 2, 5]),
    edit=st.sampled_from([False, False, True]),
    new=st.lists(ELEMENTS, max_size=4),
    other=st.one_of(st.just("same"), VALUES),
)


def config(place: tuple[str, str], id: str | None = None) -> Any:
    configurable = {"thread_id": place[0], "checkpoint_ns": place[1]}
    return {"configurable": {**configurable, **({"checkpoint_id": id} if id else {})}}


class Savers(RuleBasedStateMachine):
    """A model of LangGraph as a saver's user; `live` are values that a running graph holds."""

    all_read = True

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.memory = InMemorySaver()
        self.savers = self.opened()
        self.ids: dict[tuple[str, str], list[str]] = {}
        self.live: dict[str, dict[str, Any]] = {}
        self.gone: dict[tuple[str, str], str] = {}
        self.count = 0

    def opened(self) -> list[SqliteCheckpointer]:
        path = Path(self.folder.name) / "threads.db"
        return [SqliteCheckpointer(Database(path)) for _ in range(2)]

    @rule()
    def reopen(self) -> None:
        for saver in self.savers:
            saver.database.close()
        self.savers = self.opened()

    @rule(
        number=SAVERS,
        place=PLACES,
        which=st.sampled_from([0, 0, 1, 2, 5]),
        fresh=st.booleans(),
        orphaned=st.booleans(),
        changes=st.lists(CHANGES, min_size=1, max_size=6),
    )
    def run(
        self,
        number: int,
        place: tuple[str, str],
        which: int,
        fresh: bool,
        orphaned: bool,
        changes: list[Change],
    ) -> None:
        """A run goes on from one of the last checkpoints, or from one that was deleted."""
        known = self.ids.setdefault(place, [])
        parent = known[-1 - which % len(known)] if known else None
        if orphaned and self.gone.get(place) in self.live:
            parent, fresh = self.gone[place], False
        for change in changes:
            before = self.before(number, place, parent, fresh)
            parent = self.put(self.savers[number], place, parent, before, change)
            fresh = False

    def put(
        self,
        saver: SqliteCheckpointer,
        place: tuple[str, str],
        parent: str | None,
        before: dict[str, Any],
        change: Change,
    ) -> str:
        """A child whose list loses a tail, has its last element edited in place, and grows."""
        values, versions = dict(before["channel_values"]), dict(before["channel_versions"])
        self.count += 1
        changed: dict[str, Any] = {}
        items = list(values.get("items", []))
        if change.lost:
            items = items[: max(0, len(items) - change.lost)]
        if change.edit and items and isinstance(items[-1], dict):
            items[-1]["text"] += "!"
            self.live.clear()  # they hold the element too, and not as the last one
        if change.lost or change.new or change.edit:
            values["items"], changed["items"] = [*items, *copy.deepcopy(change.new)], self.count
        if change.other != "same":
            values["other"], changed["other"] = change.other, self.count
        checkpoint: Any = {
            **empty_checkpoint(),
            "channel_values": values,
            "channel_versions": {**versions, **changed},
            "versions_seen": {"node": dict(versions)},
            "updated_channels": sorted(changed) or None,
        }
        metadata: Any = {"source": "loop", "step": self.count, "run_id": f"r{self.count % 5}"}
        for each in (saver, self.memory):
            each.put(config(place, parent), checkpoint, metadata, changed)
        id = str(checkpoint["id"])
        self.ids[place].append(id)
        self.live[id] = copy.copy(checkpoint)
        return id

    def before(
        self, number: int, place: tuple[str, str], parent: str | None, fresh: bool
    ) -> dict[str, Any]:
        if parent is None:
            return {"channel_values": {}, "channel_versions": {}}
        if fresh or parent not in self.live:
            found = self.savers[number].get_tuple(config(place, parent))
            assert found is not None
            return dict(found.checkpoint)
        return self.live[parent]

    @precondition(lambda self: any(self.ids.values()))
    @rule(
        number=SAVERS,
        place=PLACES,
        which=st.integers(0, 3),
        task=st.integers(0, 2),
        channel=st.sampled_from(["items", "other", "__error__"]),
        values=st.lists(ELEMENTS, min_size=1, max_size=3),
    )
    def put_writes(
        self,
        number: int,
        place: tuple[str, str],
        which: int,
        task: int,
        channel: str,
        values: list[Any],
    ) -> None:
        known = self.ids.get(place)
        if not known:
            return
        at = config(place, known[-1 - which % len(known)])
        for saver in (self.savers[number], self.memory):
            writes = [(channel, value) for value in values]
            saver.put_writes(at, writes, f"task-{task}", f"path-{task}")

    @rule(number=SAVERS, thread=st.sampled_from(THREADS))
    def delete(self, number: int, thread: str) -> None:
        for saver in (self.savers[number], self.memory):
            saver.delete_thread(thread)
        self.forget(thread)

    @rule(number=SAVERS, thread=st.sampled_from(THREADS))
    def prune(self, number: int, thread: str) -> None:
        self.savers[number].prune([thread])
        for namespace in NAMESPACES:
            known = self.ids.get((thread, namespace), [])
            self.drop((thread, namespace), set(known) - {max(known, default="")})

    @rule(number=SAVERS, thread=st.sampled_from(THREADS), keep=st.integers(1, 5))
    def thin(self, number: int, thread: str, keep: int) -> None:
        self.savers[number].thin(thread, keep)
        if len(self.ids.get((thread, ""), [])) > keep:
            for namespace in NAMESPACES:
                known = sorted(self.ids.get((thread, namespace), []))
                self.drop((thread, namespace), set(known[:-keep]))

    @rule(number=SAVERS, run=st.integers(0, 4))
    def delete_run(self, number: int, run: int) -> None:
        self.savers[number].delete_for_runs([f"r{run}"])
        for place in self.ids:
            stored = self.memory.list(config(place), filter={"run_id": f"r{run}"})
            self.drop(place, {item.checkpoint["id"] for item in [*stored]})

    @rule(number=SAVERS)
    def copy(self, number: int) -> None:
        """The second thread becomes a copy of the first."""
        for saver in (self.savers[number], self.memory):
            saver.delete_thread("b")
        self.forget("b")
        self.savers[number].copy_thread("a", "b")
        memory = self.memory
        memory.storage["b"] = copy.deepcopy(memory.storage["a"])
        for stored in (memory.writes, memory.blobs):
            mine = [(key, value) for key, value in stored.items() if key[0] == "a"]
            stored.update({("b", *key[1:]): copy.copy(value) for key, value in mine})
        for namespace in NAMESPACES:
            self.ids["b", namespace] = list(self.ids.get(("a", namespace), []))

    def forget(self, thread: str) -> None:
        for place in [place for place in self.ids if place[0] == thread]:
            self.ids[place] = []
            self.gone.pop(place, None)

    def drop(self, place: tuple[str, str], ids: set[str]) -> None:
        """Take checkpoints out of the memory saver."""
        self.ids[place] = [id for id in self.ids.get(place, []) if id not in ids]
        for id in sorted(ids):
            self.gone[place] = id
            self.memory.storage[place[0]][place[1]].pop(id, None)
            self.memory.writes.pop((*place, id), None)

    @rule(number=SAVERS, place=PLACES, limit=st.integers(0, 3), which=st.integers(0, 9))
    def listed(self, number: int, place: tuple[str, str], limit: int, which: int) -> None:
        """Parts of the history are the memory saver's."""
        known = self.ids.get(place, [])
        options: dict[str, Any] = {"limit": limit, "filter": {"run_id": f"r{which % 5}"}}
        if known and which % 2:
            options["before"] = config(place, known[which % len(known)])
        if which % 3:
            del options["filter"]
        ours, theirs = (
            [plain(item) for item in saver.list(config(place), **options)]
            for saver in (self.savers[number], self.memory)
        )
        assert ours == theirs

    @invariant()
    def same(self) -> None:
        """The whole history and each newest checkpoint are the memory saver's, whoever reads."""
        if not hasattr(self, "savers"):
            return
        for place in self.ids:
            theirs = [plain(item) for item in self.memory.list(config(place))]
            newest = self.memory.get_tuple(config(place)) if theirs else None
            number = self.count % 2
            found = self.savers[number].get_tuple(config(place))
            assert (found and plain(found)) == (newest and plain(newest))
            if self.all_read:
                assert [plain(i) for i in self.savers[number].list(config(place))] == theirs

    def teardown(self) -> None:
        if hasattr(self, "savers"):
            for saver in self.savers:
                saver.database.close()
            self.folder.cleanup()


def plain(item: Any) -> Any:
    """A checkpoint tuple as a value that can be compared; kinds that are equal are told apart."""
    return repr(
        (item.config, item.checkpoint, item.metadata, item.parent_config)
    ), item.pending_writes


class FoldingSavers(Savers):
    """The same for writes that wait for their checkpoint: only one process knows them before."""

    all_read = False  # it would commit them

    def opened(self) -> list[SqliteCheckpointer]:
        database = Database(Path(self.folder.name) / "threads.db")
        return [SqliteCheckpointer(database, fold_writes=True)] * 2


TestSavers, TestFoldingSavers = Savers.TestCase, FoldingSavers.TestCase
TestSavers.settings = TestFoldingSavers.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
