"""Transactions on a file of our layout, and what this process remembers and holds back of it.

What is stored in them is said in `checkpointer` and the modules it names.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from loopwright.errors import DatabaseError
from loopwright.state.bodies import Shapes
from loopwright.state.branches import Place
from loopwright.state.database import Database
from loopwright.state.lease import Lease
from loopwright.state.lease_table import holds, require
from loopwright.state.memo import Memo
from loopwright.state.pending import Task, Waiting, store
from loopwright.state.reading import Reading


class Passing(NamedTuple):
    """A checkpoint that waits for the next transaction."""

    place: Place
    store: Callable[[Reading], None]


class LinearFile:
    """A database whose tables are made, used by a saver and the copies of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memo, self.shapes, self.waiting = Memo(), Shapes(), Waiting()
        self.passing: deque[Passing] = deque()
        """Checkpoints to store before anything else is read or written, at the next transaction."""
        self._failed: dict[Place, Exception] = {}

    @contextmanager
    def transaction(
        self,
        serde: SerializerProtocol,
        begin: str = "BEGIN IMMEDIATE",
        *,
        lease: Lease | None = None,
        passes: bool = True,
    ) -> Iterator[Reading]:
        """Reads and writes that see one state of the file; undone if anything raised.

        With a `lease` of the thread it raises LeaseLostError if another process has it now. Unless
        `passes` is False, what is `passing` is stored first.
        """
        with self.database.lock:
            try:
                with self.database.transaction() as cursor:
                    reading = Reading(cursor, serde, self.shapes)
                    joined = cursor.connection.in_transaction  # the outer one has stored them
                    passing = self._begun(reading, begin, passes) if not joined else ()
                    require(cursor, lease)
                    if joined:
                        self.memo.check(reading.removals())
                    yield reading
                for _ in passing:
                    self.passing.popleft()
            except BaseException:
                self._forget()
                raise

    def _begun(self, reading: Reading, begin: str, passes: bool) -> tuple[Passing, ...]:
        """Begin a transaction, and store what is passing: what was stored of it.

        A checkpoint that cannot be stored is its own run's affair, not that of whoever comes next:
        it is left out, and its run hears of it from the checkpoint that follows.
        """
        while True:
            passing = tuple(self.passing) if passes else ()
            reading.cursor.execute("BEGIN IMMEDIATE" if passing else begin)
            self.memo.check(reading.removals())
            failed = next(filter(None, (self._failing(item, reading) for item in passing)), None)
            if failed is None:
                return passing
            reading.cursor.connection.rollback()
            self._forget()
            self.passing.remove(failed)

    def _failing(self, item: Passing, reading: Reading) -> Passing | None:
        """Store a passing checkpoint; gives it back if it cannot be stored, whenever that is tried.

        Raises what is the file's trouble: a full disk, a lock.
        """
        try:
            item.store(reading)
        except (sqlite3.OperationalError, DatabaseError):  # it stays for the next time
            raise
        except Exception as error:  # its run's, which is told
            self._failed[item.place] = error
            return item
        return None

    def require_parent(self, place: Place) -> None:
        """Raise what kept the checkpoint that passed here last from being stored."""
        error = self._failed.pop(place, None)
        if error is not None:
            raise error

    def _forget(self) -> None:
        """What was remembered of a transaction that failed is not in the file."""
        self.memo.forget()
        self.shapes.forget()

    @contextmanager
    def snapshot(self, serde: SerializerProtocol) -> Iterator[Reading]:
        """Reads that see one state of the file and keep no one from writing.

        Where nothing can be written, on a full disk, they see what is committed.
        """
        with self.database.lock:
            with suppress(DatabaseError):
                if self.passing and not self.database.connection.in_transaction:
                    with self.transaction(serde):
                        pass
            with self.transaction(serde, "BEGIN", passes=False) as reading:
                yield reading

    def commit(self, place: Place, task: Task, serde: SerializerProtocol) -> None:
        """Commit a task's writes, and those of another task that waits there."""
        with self.transaction(serde, lease=task.lease) as reading:
            waiting = self.waiting.at(place)
            if waiting is not None and holds(reading.cursor, waiting.lease):
                store(reading.cursor, place, serde, waiting)
            store(reading.cursor, place, serde, task)
        self.waiting.done(place, waiting, several=True)

    def flush(self, serde: SerializerProtocol, thread: str | None = None) -> None:
        """Commit the writes that wait for their checkpoint, of one thread or all; those of a run
        whose lease is lost are dropped."""
        places = self.waiting.places(thread)
        if not places and not self.passing:
            return
        with self.transaction(serde) as reading:
            tasks = [(place, self.waiting.at(place)) for place in places]
            for place, task in tasks:
                if task is not None and holds(reading.cursor, task.lease):
                    store(reading.cursor, place, serde, task)
        for place, task in tasks:
            self.waiting.done(place, task)
