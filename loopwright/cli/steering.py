"""`loopwright steer`, `follow-up`, `abort`: speaking to a thread that any process may be running.

What a run does with it is decided by the loop; this only puts it into the thread's log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from loopwright.agent import Agent
from loopwright.cli.opening import Database
from loopwright.cli.past import Thread, stored
from loopwright.cli.screen import Screen
from loopwright.cli.text import clean, decoded

Text = Annotated[str, typer.Argument(help="The message.")]


@contextmanager
def _known(thread: str, database: Database) -> Iterator[Agent]:
    """The agent over a thread that exists. Raises UnknownThreadError and DatabaseError."""
    with stored(thread, database) as agent:
        agent.messages()
        yield agent


def steer(thread: Thread, text: Text, database: Database = None) -> None:
    """Queue a message for the thread's next turn; an idle thread gets it with its next run."""
    name = decoded(thread)
    with _known(name, database) as agent:
        agent.steer(decoded(text))
    Screen().line(f"queued for the next turn of {clean(name)}")


def follow_up(thread: Thread, text: Text, database: Database = None) -> None:
    """Queue a message for when the thread's run would otherwise end."""
    name = decoded(thread)
    with _known(name, database) as agent:
        agent.follow_up(decoded(text))
    Screen().line(f"queued for the end of the run of {clean(name)}")


def abort(
    thread: Thread,
    database: Database = None,
    reason: Annotated[str, typer.Option(help="Why, as the run will tell it.")] = "cancelled",
) -> None:
    """Cancel the run of a thread, whichever process it is in; an idle thread is left alone."""
    name = decoded(thread)
    with _known(name, database) as agent:
        agent.request_abort(reason=decoded(reason))
    Screen().line(f"asked the run of {clean(name)} to stop")
