"""Stored bytes that are not what they were: a damaged file, and a value of a class that is gone.

Each gives the facts of its case.
"""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from loopwright import Agent, DatabaseError, LoopwrightError, SqliteCheckpointer
from tests.conformance.storage.facts import Facts
from tests.conformance.storage.neighbours import THREAD, UnknownWordError
from tests.conformance.storage.working import PER_RUN, ROOT, Plan, agent_of, noted_warnings, turns

HEADER = 100
"""Bytes of SQLite's own header."""

_DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    r"truncate (\d+) ?%": lambda content, share: content[: len(content) * (100 - share) // 100],
    r"truncate to (\d+) bytes": lambda content, size: content[:size],
    r"cut (\d+) bytes": lambda content, size: content[: len(content) - size],
    r"(?:zero|overwrite)(?: the)? header()": lambda content, _: bytes(HEADER) + content[HEADER:],
    r"(?:not a database|text|garbage)()": lambda content, _: b"plain text\n" * 1000,
}


async def of_the_file(path: Path, words: str) -> Facts:
    """A thread whose file was damaged is read, and a turn is made on it."""
    async with agent_of(path, Plan()) as agent:
        assert not await turns(agent, THREAD, 3 * PER_RUN)
    damaged = _damage(path, words)
    raised = [await _raised(path, read) for read in (_history, _turn)]
    content, new = _looked_at(path)
    return {
        "clear_error": all(_is_clear(error, path) for error in raised),
        "original_file_kept": content == damaged,
        "no_silent_new_db": not new and all(raised),
    }


def _looked_at(path: Path) -> tuple[bytes, list[Path]]:
    """The file's content, and other databases in its folder."""
    return path.read_bytes(), [file for file in path.parent.glob("*.db") if file != path]


def _damage(path: Path, words: str) -> bytes:
    """Damage the file as the words say; its content then."""
    for pattern, change in _DAMAGES.items():
        if match := re.fullmatch(pattern, words.strip()):
            path.write_bytes(change(path.read_bytes(), int(match[1] or 0)))
            return path.read_bytes()
    raise UnknownWordError(f"unknown damage {words!r}")


async def _raised(path: Path, work: Callable[[Agent], Any]) -> BaseException | None:
    async def open_and_work() -> None:
        async with agent_of(path, Plan()) as agent:
            await work(agent)

    (ended,) = await asyncio.gather(open_and_work(), return_exceptions=True)
    return ended if isinstance(ended, BaseException) else None


async def _history(agent: Agent) -> None:
    await asyncio.to_thread(agent.messages, THREAD)


async def _turn(agent: Agent) -> None:
    await agent.prompt("Do 1 turn.", thread=THREAD)


def _is_clear(error: BaseException | None, path: Path) -> bool:
    """Ours, with the file and a way out."""
    text = str(error)
    return isinstance(error, DatabaseError) and str(path) in text and ";" in text


STORE = """
import dataclasses, enum, sys, types
from pydantic import BaseModel
from tests.conformance.storage import damage

gone = types.ModuleType("module_that_is_gone")

@dataclasses.dataclass
class Plain:
    field: str = "kept"

class Model(BaseModel):
    field: str = "kept"

class Choice(enum.Enum):
    field = "kept"

class Opaque:
    field = "kept"

for kind in (Plain, Model, Choice, Opaque):
    kind.__module__ = gone.__name__
    setattr(gone, kind.__name__, kind)
sys.modules[gone.__name__] = gone
values = {"instance": Plain, "model": Model, "enum": lambda: Choice.field, "opaque": Opaque}
damage.store(sys.argv[1], values[sys.argv[2]]())
"""
_VALUES = {
    r"(?:an? )?(?:instance|object|dataclass)(?: of a class)? that no longer exists": "instance",
    r"(?:an? )?(?:pydantic )?model(?: of a class)? that no longer exists": "model",
    r"(?:an? )?(?:member of an )?enum that no longer exists": "enum",
    r"(?:an? )?(?:instance|object)(?: of a class)? that cannot be stored": "opaque",
}


def _graph(saver: SqliteCheckpointer) -> Any:
    """A graph of one channel that keeps whatever it is given."""
    builder: Any = StateGraph(dict)
    builder.add_node("keep", lambda state: state)
    builder.add_edge(START, "keep")
    return builder.compile(checkpointer=saver)


def store(path: str, value: Any) -> None:
    """Run a graph whose state has this value."""
    with SqliteCheckpointer(path) as saver:
        _graph(saver).invoke({"value": value}, {"configurable": {"thread_id": THREAD}})


async def of_a_value(path: Path, words: str) -> Facts:
    """A value is stored by a process that has its class, and read by one that does not."""
    kind = next((k for pattern, k in _VALUES.items() if re.fullmatch(pattern, words)), None)
    if kind is None:
        raise UnknownWordError(f"unknown value {words!r}")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", STORE, str(path), kind),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    refused = err.decode().strip().splitlines()[-1] if process.returncode else ""
    found, error = _read(path)
    raw = "kept" in str(found)
    return {
        "not_silently_none": found is not None or bool(error) or bool(refused),
        "clear_error_or_raw_kept": raw or isinstance(error, LoopwrightError) or "Opaque" in refused,
        "raw_kept": raw,
    }


def _read(path: Path) -> tuple[Any, BaseException | None]:
    with noted_warnings(), SqliteCheckpointer(path) as saver:
        try:
            state = _graph(saver).get_state({"configurable": {"thread_id": THREAD}})
        except LoopwrightError as error:
            return None, error
    return state.values.get("value"), None
