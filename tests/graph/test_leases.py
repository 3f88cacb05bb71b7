"""The row that keeps other processes off a thread is there during a run and never behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from loopwright.errors import (
    BusyThreadError,
    ContinuationError,
    DatabaseError,
    InputError,
    LeaseLostError,
    UnknownModelError,
)
from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database
from loopwright.state.lease import Leases
from loopwright.testing import Gate
from tests.support.graphs import Rig, on, outline, rig
from tests.support.providers import said, steps
from tests.support.tasks import no_task_left

pytestmark = pytest.mark.anyio

HI = {"messages": "hi"}
CALL = said("I work.", ("c1", "work", {}))


@dataclass(frozen=True)
class File:
    """A file with threads, and a saver on it."""

    path: Path
    saver: SqliteCheckpointer

    def rig(self, *script: Any, **parts: Any) -> Rig:
        """A graph over the file."""
        return rig(*script, checkpointer=self.saver, **parts)

    def rows(self) -> list[tuple[str, str]]:
        """The threads and namespaces that are held."""
        with self.saver.database.transaction() as cursor:
            found = cursor.execute("SELECT thread, namespace FROM loopwright_leases ORDER BY 1, 2")
            return found.fetchall()

    def lose(self) -> None:
        """Let another process take all that is held."""
        with self.saver.database.transaction() as cursor:
            cursor.execute("UPDATE loopwright_leases SET run = 'theirs', machine = 'another'")


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[File]:
    database = Database(tmp_path / "t.db")
    yield File(tmp_path / "t.db", SqliteCheckpointer(database))
    database.close()


async def test_the_row_is_there_from_before_the_first_checkpoint_until_behind_the_last(
    file: File,
) -> None:
    seen: list[Any] = []

    def work() -> str:
        """Look at the rows."""
        seen.append(file.rows())
        return "worked"

    put = file.saver.put

    def first_put(*given: Any) -> Any:
        seen.append(file.rows())
        return put(*given)

    file.saver.put = first_put  # type: ignore[method-assign, assignment]
    made = file.rig(CALL, "done", tools=[work])
    await made.run(HI)
    assert len(seen) > 5
    assert all(rows == [("t", "")] for rows in seen)
    assert file.rows() == []


async def test_who_hears_of_the_end_may_begin_the_next_run(file: File) -> None:
    made = file.rig("one", "two")
    async for event in made.graph.astream(HI, on("t"), stream_mode="custom"):
        if event.type == "agent_end":
            assert file.rows() == []
            if not (await made.ledger())[2:]:
                assert (await made.run(HI)).final_text == "two"


async def test_graphs_over_one_file_share_their_claims_and_another_file_s_are_its_own(
    file: File, tmp_path: Path
) -> None:
    one, two = file.rig("one"), file.rig("two")
    assert one.graph.leases is two.graph.leases
    elsewhere = SqliteCheckpointer(tmp_path / "other.db")
    assert rig(checkpointer=elsewhere).graph.leases is not one.graph.leases
    elsewhere.close()
    assert rig().graph.leases is not rig().graph.leases


async def test_a_claim_that_another_graph_does_not_know_of_is_found_in_the_file(
    file: File,
) -> None:
    gate = Gate()
    first = file.rig([gate, *steps("done")])
    second = Rig(
        build(first.graph.dependencies, checkpointer=file.saver, leases=Leases()), first.provider
    )
    async with no_task_left():
        running = asyncio.ensure_future(first.run(HI))
        await gate.reached()
        with pytest.raises(BusyThreadError, match="thread 't' is busy: process"):
            await second.run({"messages": "me too"})
        gate.open()
        await running
    assert outline(await first.ledger()) == ["user: hi", "assistant: done"]


def failing(name: str) -> Any:
    raise UnknownModelError(name, "others")


REFUSALS: list[tuple[Any, type[Exception]]] = [
    ({"messages": [], "view": {}}, InputError),
    (None, ContinuationError),
    (Command(resume=1), ContinuationError),
    ({"continue": True}, ContinuationError),
    (HI, UnknownModelError),
]


@pytest.mark.parametrize(("given", "error"), REFUSALS, ids=lambda value: repr(value))
async def test_a_refused_run_leaves_neither_row_nor_thread(
    file: File, given: Any, error: type[Exception]
) -> None:
    made = file.rig("fine")
    works = made.graph.dependencies
    if error is UnknownModelError:
        made.graph.dependencies = replace(works, resolve=failing)
    with pytest.raises(error):
        await made.run(given)
    assert (file.rows(), file.saver.thread_ids()) == ([], [])
    made.graph.dependencies = works
    assert (await made.run(HI)).final_text == "fine"
    made.graph.dependencies = replace(works, resolve=failing)
    with pytest.raises(UnknownModelError):
        await made.run(HI)
    assert len(await made.ledger()) == 2


async def test_a_refused_run_leaves_no_thread_in_any_saver() -> None:
    saver = InMemorySaver()
    made = rig(checkpointer=saver)
    made.graph.dependencies = replace(made.graph.dependencies, resolve=failing)
    with pytest.raises(UnknownModelError):
        await made.run(HI)
    assert list(saver.list(None)) == []


async def test_what_was_queued_for_a_thread_is_kept_when_its_first_run_is_refused(
    file: File,
) -> None:
    made = file.rig()
    log = made.graph.dependencies.log
    log.append("t", "steering", {})
    made.graph.dependencies = replace(made.graph.dependencies, resolve=failing)
    with pytest.raises(UnknownModelError):
        await made.run(HI)
    assert len(log.read("t", ["steering"])) == 1


async def test_an_interrupted_run_gives_the_thread_back_and_so_does_the_one_that_answers(
    file: File,
) -> None:
    def work() -> str:
        """Ask a person."""
        return str(interrupt("really?"))

    made = file.rig(CALL, "done", tools=[work])
    assert (await made.run(HI)).status == "interrupted"
    assert file.rows() == []
    assert (await made.run(Command(resume="yes"))).status == "completed"
    assert file.rows() == []


async def test_a_breakpoint_gives_the_thread_back(file: File) -> None:
    made = file.rig("hello")
    assert (await made.run(HI, interrupt_before=["model"])).reason == "breakpoint"
    assert file.rows() == []


async def left_early(made: Rig, gate: Gate) -> None:
    async with aclosing(made.graph.astream(HI, on("t"), stream_mode="custom")) as stream:  # type: ignore[type-var]
        async for event in stream:
            if event.type == "turn_start":
                return


async def cancelled(made: Rig, gate: Gate) -> None:
    running = asyncio.ensure_future(made.run(HI))
    await gate.reached()
    running.cancel()
    await asyncio.wait([running])


async def cancelled_again_and_again(made: Rig, gate: Gate) -> None:
    running = asyncio.ensure_future(made.run(HI))
    await gate.reached()
    while not running.done():
        running.cancel()
        await asyncio.sleep(0)


async def cancelled_at_once(made: Rig, gate: Gate) -> None:
    running = asyncio.ensure_future(made.run(HI))
    for _ in range(3):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize(
    "leave", [left_early, cancelled, cancelled_again_and_again, cancelled_at_once]
)
async def test_a_run_that_is_left_gives_the_thread_back(
    file: File, leave: Callable[[Rig, Gate], Any]
) -> None:
    gate = Gate()
    made = file.rig([gate, *steps("never")], "fine")
    async with no_task_left():
        await leave(made, gate)
        while file.rows():  # whoever is cancelled again and again does not wait for it
            await file.saver.database.settled()
        made.provider.script[:] = ["fine"]
        assert (await made.run(HI)).final_text == "fine"
    assert file.rows() == []


async def test_a_thread_is_held_until_the_last_node_has_cleaned_up_whoever_waits(
    file: File,
) -> None:
    works, may_end = Gate(), Gate()

    async def work() -> str:
        """Clean up for as long as it takes."""
        try:
            await works.wait()
        finally:
            await may_end.wait()
        return "worked"

    made = file.rig(CALL, "fine", tools=[work])
    async with no_task_left():
        running = asyncio.ensure_future(made.run(HI))
        await works.reached()
        while not running.done():
            running.cancel()
            await asyncio.sleep(0)
        await may_end.reached()
        assert file.rows() == [("t", "")]
        with pytest.raises(BusyThreadError):
            await made.run(HI)
        may_end.open()
        while file.rows():
            await file.saver.database.settled()
        assert (await made.run(HI)).final_text == "fine"


async def test_a_batch_of_blocking_callers_leaves_no_row(file: File) -> None:
    made = file.rig(*["done"] * 4)
    configs = [on(f"t{number}") for number in range(4)]
    answers = await asyncio.to_thread(made.graph.batch, [HI] * 4, configs)
    assert {answer["result"]["status"] for answer in answers} == {"completed"}
    assert file.rows() == []


async def test_a_nested_graph_has_a_row_of_its_own(file: File) -> None:
    seen: list[list[tuple[str, str]]] = []

    def work() -> str:
        """Look at the rows."""
        seen.append(file.rows())
        return "worked"

    made = rig(CALL, "done", tools=[work])
    inner = build(made.graph.dependencies)
    builder = StateGraph(MessagesState)
    builder.add_node("agent", inner)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    parent = builder.compile(checkpointer=file.saver)
    await parent.ainvoke({"messages": [HumanMessage("hi")]}, on("t"))
    ((thread, namespace),) = seen[0]
    assert thread == "t" and namespace.startswith("agent:")
    assert file.rows() == []


def losing(file: File, made: list[Any]) -> Callable[[], str]:
    def work() -> str:
        """Be suspended for so long that another process takes over."""
        made.append("worked")
        file.lose()
        return "worked"

    return work


@pytest.mark.parametrize("fold", [False, True], ids=["not folded", "folded"])
async def test_a_run_that_lost_its_thread_stores_nothing_more(file: File, fold: bool) -> None:
    worked: list[Any] = []
    saver = SqliteCheckpointer(file.saver.database, fold_writes=fold)
    made = rig(CALL, "never", tools=[losing(file, worked)], checkpointer=saver)
    async with no_task_left():
        with pytest.raises(LeaseLostError, match="of thread 't' was suspended"):
            await made.run(HI)
    assert worked == ["worked"]
    saver.flush()
    with saver.database.transaction() as cursor:
        (count,) = cursor.execute(
            "SELECT count(*) FROM writes WHERE checkpoint_id ="
            " (SELECT max(checkpoint_id) FROM checkpoints)"
        ).fetchone()
    assert count == 0
    assert outline(await made.ledger()) == ["user: hi", "assistant: I work. [c1]"]
    assert file.rows() == [("t", "")]  # theirs


async def test_an_interrupt_of_a_run_that_lost_its_thread_is_not_stored(file: File) -> None:
    def work() -> str:
        """Lose the thread, then ask."""
        file.lose()
        return str(interrupt("really?"))

    made = file.rig(CALL, tools=[work])
    with pytest.raises(LeaseLostError):
        await made.run(HI)
    assert (await made.graph.aget_state(on("t"))).interrupts == ()


async def test_a_thread_that_cannot_be_given_back_does_not_hide_the_result(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(thread: str) -> None:
        raise DatabaseError("t.db", "disk is full", "free some space")

    monkeypatch.setattr(file.saver.leases, "_flush", full)
    made = file.rig("one", "two")
    assert (await made.run(HI)).final_text == "one"
    assert file.rows() == [("t", "")]
    assert (await made.run(HI)).final_text == "two"


async def test_a_file_that_cannot_be_written_refuses_the_run(file: File) -> None:
    made = file.rig("one")
    with file.saver.database.transaction() as cursor:
        cursor.execute("PRAGMA query_only=ON")
    with pytest.raises(DatabaseError, match="readonly"):
        await made.run(HI)
    with file.saver.database.transaction() as cursor:
        cursor.execute("PRAGMA query_only=OFF")
    assert (await made.run(HI)).final_text == "one"
    assert file.rows() == []


async def test_a_server_s_own_saver_brings_the_rows(file: File) -> None:
    seen: list[Any] = []

    def work() -> str:
        """Look at the rows."""
        seen.append(file.rows())
        return "worked"

    graph: AgentGraph = build(rig(CALL, "done", tools=[work]).graph.dependencies)
    given = graph.copy(update={"checkpointer": file.saver})
    await given.ainvoke(HI, on("t"))
    assert (seen, file.rows()) == ([[("t", "")]], [])


def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("turns", [0, 9])
async def test_a_run_costs_one_entry_and_one_deletion_however_long_it_is(
    file: File, turns: int
) -> None:
    told: list[str] = []
    calls = [said("", (f"c{n}", "look", {})) for n in range(turns)]
    made = file.rig(*calls, "done", tools=[look])
    file.saver.database.connection.set_trace_callback(told.append)
    await made.run(HI)
    file.saver.database.connection.set_trace_callback(None)
    writes = [text for text in told if "loopwright_leases" in text and "SELECT" not in text]
    assert [text.split()[0] for text in writes] == ["INSERT", "DELETE"]
