"""Kind `checkpoint`: turns on a database file, alone or beside others, and what is stored then.

What is done and found out stands in `storage`; how keys of `expect` are met, in its `facts`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.conformance.running import Case, unknown_keys
from tests.conformance.storage import crashing, damage, deleting, finding, neighbours
from tests.conformance.storage.facts import Facts, reasons
from tests.conformance.storage.neighbours import UnknownWordError
from tests.conformance.storage.working import Plan, work

Situation = Callable[[Path, Mapping[str, Any]], Awaitable[Facts]]

ABOUT_TYPES = ("unregistered type", "blocked deserialization", "msgpack")
OF_TYPES = {"warnings_about_unregistered_types", "strict_msgpack_env_ok"}
"""Keys of `expect` for which more has to be run."""
STRICT = "LANGGRAPH_STRICT_MSGPACK"


async def turns(path: Path, given: Mapping[str, Any]) -> Facts:
    """Turns by one or more processes, each on threads of its own."""
    processes, threads = given.get("processes", 1), given.get("threads", 1)
    names = [[f"t{p}.{t}" for t in range(threads)] for p in range(processes)]
    options = {key: given[key] for key in ("chars_each", "static_kb", "retention") if key in given}
    count = given.get("turns", 1)
    told = await work(path, *(Plan(own, count, **options) for own in names))
    return {
        "errors": sum(len(each.errors) for each in told),
        "turns_stored": finding.turns_stored(path, [name for own in names for name in own]),
        "db_mb": finding.megabytes(path),
        "checkpoints_per_thread": finding.checkpoints_per_thread(path),
        "warnings": sum(len(each.warnings) for each in told),
    }


async def types(path: Path, given: Mapping[str, Any]) -> Facts:
    """Whether the state has types of its own: with our saver, and with LangGraph's, strict or not.

    That one's serializer revives other types unless it is strict, and warns of them.
    """
    count = given.get("turns", 1)
    mine = await work(path, Plan(turns=count), **{STRICT: "false"})
    lenient = await work(path, Plan(turns=count, stock=True), **{STRICT: "false"})
    strict = await work(path, Plan(turns=count, stock=True), **{STRICT: "true"})
    said = [text.lower() for each in (*mine, *lenient, *strict) for text in each.warnings]
    about = [text for text in said if any(word in text for word in ABOUT_TYPES)]
    (ended,) = strict
    return {
        "warnings_about_unregistered_types": len(about),
        "strict_msgpack_env_ok": not ended.errors and not ended.warnings,
    }


async def _lock(path: Path, given: Mapping[str, Any]) -> Facts:
    return await neighbours.beside_a_lock(path, given["lock_s"])


async def _reader(path: Path, given: Mapping[str, Any]) -> Facts:
    return await neighbours.beside_a_reader(path, given["reader"], given.get("writer_turns", 10))


async def _steps(path: Path, given: Mapping[str, Any]) -> Facts:
    return await neighbours.half_read(path, given["steps"])


async def _corrupt(path: Path, given: Mapping[str, Any]) -> Facts:
    return await damage.of_the_file(path, given["corrupt"])


async def _value(path: Path, given: Mapping[str, Any]) -> Facts:
    return await damage.of_a_value(path, given["state_value"])


async def _delete(path: Path, given: Mapping[str, Any]) -> Facts:
    each = given.get("turns", 25)
    return await deleting.one_of(path, given.get("threads", 2), given["delete"], each)


async def _batch(path: Path, given: Mapping[str, Any]) -> Facts:
    return await crashing.killed_after(path.parent, given)


SITUATIONS: dict[str, tuple[Situation, Sequence[str]]] = {
    "batch": (_batch, ("kill_after_finished",)),
    "corrupt": (_corrupt, ()),
    "delete": (_delete, ("threads", "turns")),
    "lock_s": (_lock, ()),
    "reader": (_reader, ("writer_turns",)),
    "state_value": (_value, ()),
    "steps": (_steps, ()),
    "turns": (turns, ("processes", "threads", "chars_each", "static_kb", "retention")),
}
"""By the key that a case of this situation has: what is done, and the other keys it may have."""


async def drive(case: Case) -> Sequence[str]:
    """Do what the input says on a new file, and hold the facts against `expect`."""
    key = next((key for key in SITUATIONS if key in case.input), None)
    if key is None:
        return [f"no situation for the keys {sorted(case.input)}"]
    situation, others = SITUATIONS[key]
    if unknown := unknown_keys("input", case.input, [key, *others]):
        return unknown
    with TemporaryDirectory() as folder:
        try:
            facts = await situation(Path(folder) / "threads.db", case.input)
            if OF_TYPES & case.expect.keys():
                facts = {**facts, **await types(Path(folder) / "types.db", case.input)}
        except UnknownWordError as error:
            return [str(error)]
    unsaid = facts.get("errors") and not any("errors" in key for key in case.expect)
    return [*reasons(case.expect, facts), *([f"{facts['errors']} errors"] if unsaid else [])]
