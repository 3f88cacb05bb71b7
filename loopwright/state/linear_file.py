"""Transactions on a file of our layout, and what this process remembers and holds back of it.

What is stored in them is said in `checkpointer` and the modules it names.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

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


class LinearFile:
    """A database whose tables are made, used by a saver and the copies of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memo, self.shapes, self.waiting = Memo(), Shapes(), Waiting()
        self.passing: deque[Callable[[Reading], None]] = deque()
        """Checkpoints to store before anything else is read or written, at the next transaction."""

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
                    joined = cursor.connection.in_transaction  # the outer one has stored them
                    passing = () if joined or not passes else tuple(self.passing)
                    if not joined:
                        cursor.execute("BEGIN IMMEDIATE" if passing else begin)
                    require(cursor, lease)
                    reading = Reading(cursor, serde, self.shapes)
                    self.memo.check(reading.removals())
                    for store_checkpoint in passing:
                        store_checkpoint(reading)
                    yield reading
                for _ in passing:
                    self.passing.popleft()
            except BaseException:
                # What was remembered of this transaction is not in the file.
                self.memo.forget()
                self.shapes.forget()
                raise

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
