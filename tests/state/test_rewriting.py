"""Stock files rewritten linearly: everything kept, the source untouched, goes on after a kill."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from loopwright import Agent
from loopwright.errors import ConfigurationError, DatabaseError
from loopwright.state import rewriting
from loopwright.state.rewriting import linearize
from tests.support.graphs import on
from tests.support.processes import start
from tests.support.savers import (
    KINDS,
    Opener,
    chat,
    count,
    folding,
    history,
    ours,
    size,
    stock,
    talk,
    told,
)


def stored(opened: Opener, path: Path) -> list[object]:
    """All that a saver lists, as it gives it, and all threads' histories."""
    with opened(path) as saver:
        return [
            (found.config, found.checkpoint, found.metadata, found.parent_config, writes)
            for found in saver.list(None)
            for writes in [found.pending_writes]
        ]


def everything(path: Path, opened: Opener = stock) -> None:
    """A file with threads of every kind."""
    with opened(path) as saver:
        for kind, (make, work) in KINDS.items():
            for thread in (kind, f"{kind} again"):
                work(make(saver), thread)


def histories(path: Path, opened: Opener) -> dict[str, list[object]]:
    with opened(path) as saver:
        return {kind: history(make(saver), kind) for kind, (make, _) in KINDS.items()}


def test_every_thread_is_kept_and_the_source_is_not_changed(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    everything(source)
    before = source.read_bytes()
    steps: list[tuple[str, int, int]] = []
    done = linearize(source, target, progress=lambda *step: steps.append(step))
    assert source.read_bytes() == before
    assert histories(target, ours) == histories(source, stock)
    assert (done.checkpoints, done.threads) == (count(source, "checkpoints"), 2 * len(KINDS))
    assert done.writes == count(source, "writes") == count(target, "writes")
    assert (done.bytes_before, done.bytes_after) == (len(before), target.stat().st_size)
    assert done.left_out == ()
    assert {step for step, *_ in steps} == {"copied", "compared"}
    assert steps[-1][1:] == (done.checkpoints, done.checkpoints)
    assert stored(ours, target) == stored(ours, source)  # opened in place


@pytest.mark.parametrize("kind", KINDS)
def test_a_rewritten_thread_goes_on_as_the_stock_one(kind: str, tmp_path: Path) -> None:
    make, work = KINDS[kind]
    with stock(tmp_path / "stock.db") as saver:
        work(make(saver))
    linearize(tmp_path / "stock.db", tmp_path / "linear.db")
    with ours(tmp_path / "linear.db") as saver, stock(tmp_path / "stock.db") as other:
        for each in (saver, other):
            work(make(each))
        assert history(make(saver)) == history(make(other))


@pytest.mark.parametrize("opened", [ours, folding])
def test_a_file_of_our_own_and_one_of_both_savers_are_kept_too(
    opened: Opener, tmp_path: Path
) -> None:
    source, target = tmp_path / "mixed.db", tmp_path / "linear.db"
    everything(source)
    everything(source, opened)
    with opened(source) as saver:
        saver.prune(["deltas again"])
    linearize(source, target)
    assert histories(target, ours) == histories(source, ours)
    assert stored(ours, target) == stored(ours, source)


def test_what_waits_in_the_log_is_kept_and_its_numbers_are_not_used_again(tmp_path: Path) -> None:
    source, target = tmp_path / "mixed.db", tmp_path / "linear.db"
    with Agent("offline", database=source, thread="mine") as agent:
        agent.run("hello")
        agent.steer("waits")
        agent._storage.log.append("gone", "steering", {})
        agent._storage.log.delete("gone")
        (last,) = [entry.sequence for entry in agent._storage.log.read("mine", ["steering"])]
    linearize(source, target)
    with Agent("offline", database=target, thread="mine") as agent:
        assert [message.text for message in agent.queued("steering")] == ["waits"]
        assert agent._storage.log.append("mine", "steering", {}) > last + 1


def test_killed_at_any_batch_it_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        for thread in "abc":
            talk(chat(saver), thread)
    total = count(source, "checkpoints")
    script = """
        import os, signal, sys
        from loopwright.state import rewriting
        rewriting.BATCH = 5
        killed_at = int(sys.argv[3])

        def told(step, done, total):
            if killed_at and done >= killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

        rewriting.linearize(sys.argv[1], sys.argv[2], progress=told)
    """
    for killed_at in (1, 10, total - 1, 0):
        with start(script, source, target, killed_at) as process:
            assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == (-signal.SIGKILL if killed_at else 0)
        assert target.exists() == (not killed_at)
    assert stored(ours, target) == stored(ours, source)
    assert {path.name for path in tmp_path.glob("linear*")} == {"linear.db"}


def test_what_was_copied_before_a_kill_is_not_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        talk(chat(saver))
    monkeypatch.setattr(rewriting, "BATCH", 5)
    copied: list[str] = []
    copy = rewriting._Rewriting._copy_checkpoint

    def counted(self: rewriting._Rewriting, writing: object, place: object, id: str) -> None:
        copied.append(id)
        copy(self, writing, place, id)  # type: ignore[arg-type]

    monkeypatch.setattr(rewriting._Rewriting, "_copy_checkpoint", counted)

    def interrupted(step: str, done: int, total: int) -> None:
        if done >= 10 and len(copied) == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linearize(source, target, progress=interrupted)
    linearize(source, target)
    assert len(copied) == len(set(copied)) == count(source, "checkpoints")


def test_a_long_thread_becomes_small(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        graph = chat(saver)
        for number in range(100):
            graph.update_state(
                on("t"), {"messages": [HumanMessage(os.urandom(250).hex(), id=f"m{number}")]}
            )
        newest = told(graph.get_state(on("t")))
    done = linearize(source, target)
    assert done.bytes_after * 4 < done.bytes_before <= size(source)
    assert count(target, "loopwright_rows") == 100
    with ours(target) as saver:
        assert told(chat(saver).get_state(on("t"))) == newest


def test_a_target_that_exists_or_is_half_of_another_file_is_kept(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        talk(chat(saver))
    target.write_text("precious")
    with pytest.raises(ConfigurationError, match=r"linear\.db.*exists"):
        linearize(source, target)
    assert target.read_text() == "precious"
    target.unlink()

    def interrupted(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linearize(source, target, progress=interrupted)
    source.rename(tmp_path / "other.db")
    with pytest.raises(ConfigurationError, match="half of another file"):
        linearize(tmp_path / "other.db", target)


def test_what_is_no_savers_is_refused_or_told(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    with pytest.raises(DatabaseError, match=r"stock\.db.*no checkpoints"):
        linearize(source, target)
    with pytest.raises(DatabaseError, match="no such file"):
        linearize(tmp_path / "nothing.db", target)
    assert not list(tmp_path.glob("linear*")) and not (tmp_path / "nothing.db").exists()
    with stock(source) as saver:
        talk(chat(saver))
    assert linearize(source, target).left_out == ("mine",)


def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        talk(chat(saver))
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle' WHERE rowid = 3")
        connection.commit()
    with pytest.raises(DatabaseError, match=r"stock\.db.*thread 't' cannot be read.*pickle"):
        linearize(source, target)
    assert not target.exists()


def test_a_source_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    source, target = tmp_path / "stock.db", tmp_path / "linear.db"
    with stock(source) as saver:
        talk(chat(saver))

    def interrupted(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linearize(source, target, progress=interrupted)
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("DELETE FROM writes WHERE idx = 0")
        connection.commit()
    with pytest.raises(DatabaseError, match=r"differs from the source.*begin again"):
        linearize(source, target)
    assert not target.exists()
