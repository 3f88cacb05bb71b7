"""Transactions on a file of our layout, and what this process remembers and holds back of it.

What is stored in them is said in `checkpointer` and the modules it names.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.checkpoint.serde.base import SerializerProtocol

from loopwright.state.bodies import Shapes
from loopwright.state.branches import Place
from loopwright.state.database import Database
from loopwright.state.memo import Memo
from loopwright.state.pending import Task, Waiting, store
from loopwright.state.reading import Reading


class LinearFile:
    """A database whose tables are made, used by a saver and the copies of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memo, self.shapes, self.waiting = Memo(), Shapes(), Waiting()

    @contextmanager
    def transaction(
        self, serde: SerializerProtocol, begin: str = "BEGIN IMMEDIATE"
    ) -> Iterator[Reading]:
        """Reads and writes that see one state of the file; undone if anything raised."""
        with self.database.lock:
            try:
                with self.database.transaction() as cursor:
                    cursor.execute(begin)
                    reading = Reading(cursor, serde, self.shapes)
                    self.memo.check(reading.removals())
                    yield reading
            except BaseException:
                # What was remembered of this transaction is not in the file.
                self.memo.forget()
                self.shapes.forget()
                raise

    @contextmanager
    def snapshot(self, serde: SerializerProtocol) -> Iterator[Reading]:
        """Reads that see one state of the file and keep no one from writing."""
        with self.transaction(serde, "BEGIN") as reading:
            yield reading

    def commit(self, place: Place, task: Task, serde: SerializerProtocol) -> None:
        """Commit a task's writes, and those of another task that waits there."""
        with self.transaction(serde) as reading:
            waiting = self.waiting.at(place)
            for ended in filter(None, (waiting, task)):
                store(reading.cursor, place, serde, ended)
        self.waiting.done(place, waiting, several=True)

    def flush(self, serde: SerializerProtocol) -> None:
        """Commit all writes that wait for their checkpoint."""
        places = self.waiting.places()
        if not places:
            return
        with self.transaction(serde) as reading:
            tasks = [(place, self.waiting.at(place)) for place in places]
            for place, task in tasks:
                if task is not None:
                    store(reading.cursor, place, serde, task)
        for place, task in tasks:
            self.waiting.done(place, task)
