"""Whatever is put, forked, rewritten, edited, copied and deleted: every read is the memory saver's.

Two savers work on one file as two processes do, and each may be opened anew at any time.
"""

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from loopwright.state.linear import SqliteCheckpointer
from loopwright.state.database import Database

THREADS, NAMESPACES = ("a", "b"), ("", "inner")
ELEMENTS = st.one_of(
    st.builds(lambda n, size: {"n": n, "text": "x" * size}, st.integers(0, 9), st.integers(0, 400)),
    st.sampled_from([None, b"bytes", "text", 1, True]),
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=9), st.just("long " * 400))
PLACES = st.tuples(st.sampled_from(THREADS), st.sampled_from(NAMESPACES))
SAVERS = st.integers(0, 1)


def config(place: tuple[str, str], id: str | None = None) -> Any:
    configurable = {"thread_id": place[0], "checkpoint_ns": place[1]}
    return {"configurable": {**configurable, **({"checkpoint_id": id} if id else {})}}


class Savers(RuleBasedStateMachine):
    """A model of LangGraph as a saver's user; `live` are values that a running graph holds."""

    fold = False

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.memory = InMemorySaver()
        self.savers = [self.opened(), self.opened()]
        self.ids: dict[tuple[str, str], list[str]] = {}
        self.live: dict[str, dict[str, Any]] = {}
        self.count = 0

    def opened(self) -> SqliteCheckpointer:
        database = Database(Path(self.folder.name) / "threads.db")
        return SqliteCheckpointer(database, fold_writes=self.fold)

    @rule(number=SAVERS)
    def reopen(self, number: int) -> None:
        self.savers[number].database.close()
        self.savers[number] = self.opened()

    @rule(
        number=SAVERS,
        place=PLACES,
        which=st.integers(0, 3),
        fresh=st.booleans(),
        kept=st.integers(0, 3),
        new=st.lists(ELEMENTS, max_size=4),
        edit=st.booleans(),
        other=st.one_of(st.just("same"), VALUES),
    )
    def put(
        self,
        number: int,
        place: tuple[str, str],
        which: int,
        fresh: bool,
        kept: int,
        new: list[Any],
        edit: bool,
        other: Any,
    ) -> None:
        """A child of one of the last checkpoints: its list loses a tail and gets another."""
        known = self.ids.setdefault(place, [])
        parent = known[-1 - which % len(known)] if known else None
        before = self.before(number, place, parent, fresh)
        values, versions = dict(before["channel_values"]), dict(before["channel_versions"])
        self.count += 1
        changed: dict[str, Any] = {}
        items = list(values.get("items", []))
        if kept:
            items = items[: max(0, len(items) - kept)]
        if edit and items and isinstance(items[-1], dict):
            items[-1]["text"] += "!"
            self.live.clear()  # they hold the element too, and not as the last one
        if kept or new or edit:
            values["items"], changed["items"] = [*items, *copy.deepcopy(new)], self.count
        if other != "same":
            values["other"], changed["other"] = other, self.count
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": values,
            "channel_versions": {**versions, **changed},
            "versions_seen": {"node": dict(versions)},
            "updated_channels": sorted(changed) or None,
        }
        for saver in (self.savers[number], self.memory):
            metadata: Any = {"source": "loop", "step": self.count, "run_id": f"r{self.count % 5}"}
            saver.put(config(place, parent), checkpoint, metadata, changed)  # type: ignore[arg-type]
        known.append(str(checkpoint["id"]))
        self.live[str(checkpoint["id"])] = copy.copy(checkpoint)

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
        memory.writes.update({("b", *k[1:]): copy.copy(v) for k, v in [*memory.writes.items()] if k[0] == "a"})
        memory.blobs.update({("b", *k[1:]): v for k, v in [*memory.blobs.items()] if k[0] == "a"})
        for namespace in NAMESPACES:
            self.ids["b", namespace] = list(self.ids.get(("a", namespace), []))

    def forget(self, thread: str) -> None:
        for place in [place for place in self.ids if place[0] == thread]:
            self.ids[place] = []

    def drop(self, place: tuple[str, str], ids: set[str]) -> None:
        """Take checkpoints out of the memory saver."""
        self.ids[place] = [id for id in self.ids.get(place, []) if id not in ids]
        for id in ids:
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
            if not self.fold:
                assert [plain(i) for i in self.savers[number].list(config(place))] == theirs
            found = self.savers[number].get_tuple(config(place))
            assert (found and plain(found)) == (newest and plain(newest))

    def teardown(self) -> None:
        if hasattr(self, "savers"):
            for saver in self.savers:
                saver.database.close()
            self.folder.cleanup()


def plain(item: Any) -> Any:
    """A checkpoint tuple as a value that can be compared; kinds that are equal are told apart."""
    return repr((item.config, item.checkpoint, item.metadata, item.parent_config)), item.pending_writes


TestSavers = Savers.TestCase
TestSavers.settings = settings(
    max_examples=100,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
