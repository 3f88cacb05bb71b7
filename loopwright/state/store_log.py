"""The log over LangGraph's `BaseStore`: for servers whose storage is a store and not a SQLite file.

The contract is `log.Log`'s; how far a store can keep it is said in the class.
"""

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import Generator, Sequence
from typing import Any
from uuid import uuid4

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.base import Op as StoreOp

from loopwright.state.lease import Lease
from loopwright.state.log import Entry

PAGE = 100
"""Items that one search asks for."""

_ROOT, _NUMBERS, _NEWEST = "loopwright_log", "numbers", "newest"
_RANDOM_BITS = 10

Steps = Generator[list[StoreOp], list[Any], Any]
"""Batches of operations that are sent to the store one after the other; each gets its results."""


class StoreLog:
    """A `Log` in any `BaseStore`. One append is one item, so its bodies are stored all or none.

    A sequence number is made of the time and grows over what this process has appended and over
    what the thread has had, whatever the clocks say. What a store cannot promise, because it has
    no lock: of two processes that append to one thread at the very same time, the one with the
    lower number may be stored last, and a reader whose cursor has passed that number then misses
    it; two numbers may even be equal. To find what is behind a cursor, `read` reads all items of
    its kinds. How long a commit lasts is the store's business: `full` changes nothing.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._last = 0

    def append(self, thread: str, kind: str, body: Any) -> int:
        (sequence,) = self.append_all(thread, kind, [body])
        return sequence

    def append_all(
        self, thread: str, kind: str, bodies: Sequence[Any], *, full: bool = False
    ) -> list[int]:
        numbers: list[int] = self._driven(self._appending(thread, kind, bodies))
        return numbers

    async def commit(
        self,
        thread: str,
        kind: str,
        bodies: Sequence[Any],
        *,
        full: bool = False,
        lease: Lease | None = None,
    ) -> list[int]:
        work = self._adriven(self._appending(thread, kind, bodies))
        numbers: list[int] = await asyncio.shield(asyncio.ensure_future(work))
        return numbers

    def read(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        entries: list[Entry] = self._driven(_reading(thread, kinds, after))
        return entries

    async def poll(self, thread: str, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        entries: list[Entry] = await self._adriven(_reading(thread, kinds, after))
        return entries

    def delete(self, thread: str) -> None:
        self._driven(_deleting(thread))

    def _driven(self, steps: Steps) -> Any:
        results: list[Any] | None = None
        try:
            while True:
                operations = steps.send(results)  # type: ignore[arg-type]
                results = self._store.batch(operations)
        except StopIteration as end:
            return end.value

    async def _adriven(self, steps: Steps) -> Any:
        """The same for the event loop; a store that has no async methods works in a thread."""
        results: list[Any] | None = None
        try:
            while True:
                operations = steps.send(results)  # type: ignore[arg-type]
                try:
                    results = await self._store.abatch(operations)
                except NotImplementedError:
                    results = await asyncio.to_thread(self._store.batch, operations)
        except StopIteration as end:
            return end.value

    def _appending(self, thread: str, kind: str, bodies: Sequence[Any]) -> Steps:
        if not bodies:
            return []
        text, place = json.dumps(list(bodies)), (_ROOT, _label(thread))
        (newest,) = yield [GetOp((*place, _NUMBERS), _NEWEST)]
        numbers = self._numbers(len(bodies), 0 if newest is None else newest.value["number"])
        item = {"first": numbers[0], "bodies": text}
        yield [
            PutOp((*place, _label(kind)), uuid4().hex, item, index=False),
            PutOp((*place, _NUMBERS), _NEWEST, {"number": numbers[-1]}, index=False),
        ]
        return numbers

    def _numbers(self, count: int, newest: int) -> list[int]:
        """Fresh numbers, above all that this process knows of."""
        now = (time.time_ns() // 1000 << _RANDOM_BITS) + random.getrandbits(_RANDOM_BITS)
        with self._lock:
            first = max(now, newest + 1, self._last + 1)
            self._last = first + count - 1
        return list(range(first, first + count))


def _reading(thread: str, kinds: Sequence[str], after: int) -> Steps:
    found: list[Entry] = []
    for kind in dict.fromkeys(kinds):
        items = yield from _items((_ROOT, _label(thread), _label(kind)))
        for item in items:
            for number, body in enumerate(json.loads(item.value["bodies"]), item.value["first"]):
                found.append(Entry(number, thread, kind, body))
    behind = [entry for entry in found if entry.sequence > after]
    return sorted(behind, key=lambda entry: entry.sequence)


def _deleting(thread: str) -> Steps:
    place = (_ROOT, _label(thread))
    condition = MatchCondition(match_type="prefix", path=place)
    namespaces = yield from _paged(ListNamespacesOp(match_conditions=(condition,), limit=PAGE))
    for namespace in map(tuple, namespaces):
        if namespace[:2] == place:  # stores differ in what a prefix is
            items = yield from _items(namespace)
            yield [PutOp(namespace, item.key, None) for item in items]


def _items(namespace: tuple[str, ...]) -> Steps:
    """All items of one namespace, each once."""
    found = yield from _paged(SearchOp(namespace, limit=PAGE))
    return list({item.key: item for item in found if tuple(item.namespace) == namespace}.values())


def _paged(operation: SearchOp | ListNamespacesOp) -> Steps:
    """All that an operation finds. What is appended meanwhile may shift the pages, so that
    something is found twice; nothing is missed, because stores give what is new first or last."""
    found: list[Any] = []
    while True:
        (page,) = yield [operation._replace(offset=len(found))]
        found += page
        if len(page) < PAGE:
            return found


def _label(text: str) -> str:
    """A text as a namespace label: never empty, without full stops, and no two texts alike."""
    return "=" + re.sub("[^A-Za-z0-9_-]", lambda found: f"~{ord(found[0]):x}~", text)
