"""`langgraph dev` with our checkpointer, for langchain's agent and for ours; nothing blocks it."""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.entrances.processes import PATIENCE, Process

pytestmark = pytest.mark.anyio

GRAPHS = ["ours", "theirs"]


@pytest.fixture
async def client(dev_server: Process) -> AsyncIterator[LangGraphClient]:
    """The SDK's client; at the end nothing has blocked the server."""
    async with get_client(url=dev_server.url, timeout=PATIENCE) as made:
        yield made
    assert "BlockingError" not in dev_server.log
    assert "Custom checkpointer missing" not in dev_server.log


@pytest.fixture
async def thread(client: LangGraphClient) -> str:
    """A new thread."""
    return str((await client.threads.create())["thread_id"])


class Gate:
    """A pipe at which a tool waits until it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: list[int] = []
        os.mkfifo(path)

    def open(self) -> None:
        """Let those go on who wait, and those who come later."""
        self._opened.append(os.open(self.path, os.O_RDWR))

    def close(self) -> None:
        """Remove what was opened."""
        for opened in self._opened:
            os.close(opened)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate that is open at the end, so that no tool is left behind it."""
    made = Gate(tmp_path / "gate")
    yield made
    made.open()
    made.close()


def prompt(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def told(state: Any) -> list[str]:
    """The texts of a state's messages."""
    return [str(message["content"]) for message in state.get("messages", ())]


async def values(client: LangGraphClient, thread: str) -> list[str]:
    return told((await client.threads.get_state(thread))["values"])


async def waiting(
    client: LangGraphClient, thread: str, graph: str, server: Process, gate: Gate
) -> Any:
    """A run that has come into its tool and stays there."""
    run = await client.runs.create(thread, graph, input=prompt(f"wait {gate.path}"))
    server.until(Path(f"{gate.path}.begun").exists)
    return run


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_second_run_is_rejected(
    client: LangGraphClient, thread: str, graph: str, dev_server: Process, gate: Gate
) -> None:
    first = await waiting(client, thread, graph, dev_server, gate)
    with pytest.raises(ConflictError):
        await client.runs.create(thread, graph, input=prompt("second"), multitask_strategy="reject")
    gate.open()
    await client.runs.join(thread, first["run_id"])
    assert await values(client, thread) == [f"wait {gate.path}", "", "waited", "heard wait"]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_second_run_waits_for_the_first(
    client: LangGraphClient, thread: str, graph: str, dev_server: Process, gate: Gate
) -> None:
    await waiting(client, thread, graph, dev_server, gate)
    second = await client.runs.create(
        thread, graph, input=prompt("second"), multitask_strategy="enqueue"
    )
    gate.open()
    await client.runs.join(thread, second["run_id"])
    assert await values(client, thread) == [
        *(f"wait {gate.path}", "", "waited", "heard wait"),
        *("second", "heard second"),
    ]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_second_run_interrupts_the_first_and_keeps_what_it_did(
    client: LangGraphClient, thread: str, graph: str, dev_server: Process, gate: Gate
) -> None:
    first = await waiting(client, thread, graph, dev_server, gate)
    second = await client.runs.create(
        thread, graph, input=prompt("second"), multitask_strategy="interrupt"
    )
    await client.runs.join(thread, second["run_id"])
    assert (await client.runs.get(thread, second["run_id"]))["status"] == "success"
    assert (await client.runs.get(thread, first["run_id"]))["status"] == "interrupted"
    texts = await values(client, thread)
    assert (texts[0], texts[-2:]) == (f"wait {gate.path}", ["second", "heard second"])


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_second_run_undoes_the_first(
    client: LangGraphClient, thread: str, graph: str, dev_server: Process, gate: Gate
) -> None:
    await client.runs.wait(thread, graph, input=prompt("before"))
    first = await waiting(client, thread, graph, dev_server, gate)
    second = await client.runs.create(
        thread, graph, input=prompt("second"), multitask_strategy="rollback"
    )
    await client.runs.join(thread, second["run_id"])
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, first["run_id"])
    kept = ["before", "heard before", "second", "heard second"]
    assert await values(client, thread) == kept
    history = await client.threads.get_history(thread, limit=100)
    assert not [state for state in history if f"wait {gate.path}" in told(state["values"])]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_thread_is_copied_and_both_go_on(
    client: LangGraphClient, thread: str, graph: str
) -> None:
    await client.runs.wait(thread, graph, input=prompt("one"))
    threads: Any = client.threads  # its types say that a copy gives nothing
    copy = (await threads.copy(thread))["thread_id"]
    of_both = [await client.threads.get_history(each, limit=100) for each in (thread, copy)]
    first, second = ([told(state["values"]) for state in history] for history in of_both)
    assert first == second
    await client.runs.wait(copy, graph, input=prompt("two"))
    assert await values(client, thread) == ["one", "heard one"]
    assert await values(client, copy) == ["one", "heard one", "two", "heard two"]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_thread_is_forked_at_an_earlier_checkpoint(
    client: LangGraphClient, thread: str, graph: str
) -> None:
    for text in ("one", "two"):
        await client.runs.wait(thread, graph, input=prompt(text))
    history = await client.threads.get_history(thread, limit=100)
    settled = [state for state in history if not state["next"]]
    after_one = next(s for s in settled if told(s["values"]) == ["one", "heard one"])
    checkpoint = after_one["checkpoint"]
    await client.threads.update_state(thread, prompt("other"), checkpoint=checkpoint)
    assert await values(client, thread) == ["one", "heard one", "other"]
    longer = await client.threads.get_history(thread, limit=100)
    assert ["one", "heard one", "two", "heard two"] in [told(s["values"]) for s in longer]
    assert len(longer) == len(history) + 1


@pytest.mark.parametrize("graph", GRAPHS)
async def test_the_history_is_read_in_pages(
    client: LangGraphClient, thread: str, graph: str
) -> None:
    for number in range(3):
        await client.runs.wait(thread, graph, input=prompt(f"p{number}"))
    whole = await client.threads.get_history(thread, limit=100)
    pages: list[Any] = await client.threads.get_history(thread, limit=4)
    while True:
        before: Any = {"configurable": pages[-1]["checkpoint"]}
        page = await client.threads.get_history(thread, limit=4, before=before)
        if not page:
            break
        pages += page
    assert [state["checkpoint"] for state in pages] == [state["checkpoint"] for state in whole]
    assert len(whole) > 8


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_deleted_thread_leaves_no_row(
    client: LangGraphClient, thread: str, graph: str, dev_server: Process
) -> None:
    await client.runs.wait(thread, graph, input=prompt("one"))
    assert _rows(dev_server.database, thread) > 0
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get_state(thread)
    assert _rows(dev_server.database, thread) == 0


def _rows(path: Path, thread: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (thread,))
            for table, column in (
                ("checkpoints", "thread_id"),
                ("writes", "thread_id"),
                ("loopwright_branches", "thread"),
                ("loopwright_values", "thread"),
            )
        ]
        return sum(int(count.fetchone()[0]) for count in counts)
