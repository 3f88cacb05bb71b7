"""`loopwright history`, `fork`, `rewind`, `delete`, `prune`: the past of a stored thread.

What each of them does is said at the agent's methods of the same names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from loopwright.agent import Agent
from loopwright.cli.opening import Database, database_path, thread_id
from loopwright.cli.screen import Screen
from loopwright.cli.text import clean, decoded
from loopwright.state.connecting import require_file

Thread = Annotated[str, typer.Argument(help="Id of the thread; `threads` lists them.")]
Given = Annotated[
    str | None, typer.Option("--at", help="A moment of `history`, or a number of messages.")
]
Name = Annotated[str | None, typer.Option(help="Id of the new thread.", show_default=False)]


@contextmanager
def stored(thread: str, database: Database) -> Iterator[Agent]:
    """An agent over a database that exists. Raises DatabaseError."""
    path = database_path(database)
    require_file(path)
    with Agent(database=path, thread=thread) as agent:
        yield agent


def moment(given: str | None) -> str | int | None:
    """What `--at` says: a number of messages, or the id of a moment or its beginning."""
    if given is None:
        return None
    return int(given) if given.isascii() and given.isdigit() else decoded(given)


def history(
    thread: Thread,
    database: Database = None,
    limit: Annotated[int, typer.Option(min=1, help="How many moments are shown.")] = 20,
) -> None:
    """List the moments of a thread that can be gone back to, the newest first."""
    name = decoded(thread)
    with stored(name, database) as agent:
        moments = agent.history(limit=limit + 1)
    screen = Screen()
    for found in moments[:limit]:
        when = found.time[:19].replace("T", " ")
        then = f", then {found.next}" if found.next else ""
        what = f"{found.source if found.source != 'loop' else found.decision}{then}"
        screen.line(f"{clean(found.id)}  {when}  {found.messages:>5} messages  {clean(what)}")
    if len(moments) > limit:
        screen.line("... and earlier ones (--limit)")


def fork(thread: Thread, database: Database = None, at: Given = None, name: Name = None) -> None:
    """Begin a new thread as another one was at a moment; prints the id of the new one."""
    source, target = decoded(thread), thread_id(name)
    with stored(source, database) as agent:
        made = agent.fork(at=moment(at), name=target)
    Screen().line(clean(made))


def rewind(
    thread: Thread,
    at: Annotated[str, typer.Option("--at", help="A moment of `history`, or a number.")],
    database: Database = None,
) -> None:
    """Let a thread go on from an earlier moment."""
    name = decoded(thread)
    with stored(name, database) as agent:
        agent.rewind(at=moment(at))
        left = len(agent.messages())
    Screen().line(f"{clean(name)} goes on behind message {left}")


def delete(
    thread: Thread,
    database: Database = None,
    reclaim: Annotated[
        bool, typer.Option("--reclaim", help="Give the space back; rewrites the file.")
    ] = False,
) -> None:
    """Delete all that is stored of a thread."""
    name = decoded(thread)
    with stored(name, database) as agent:
        agent.delete(name, reclaim=reclaim)
    Screen().line(f"deleted {clean(name)}")


def prune(
    thread: Thread,
    database: Database = None,
    keep: Annotated[int, typer.Option(min=1, help="How many moments stay.")] = 1,
) -> None:
    """Forget the past of a thread but for its newest moments; its messages stay."""
    name = decoded(thread)
    with stored(name, database) as agent:
        agent.prune(keep=keep)
        left = len(agent.history())
    Screen().line(f"{clean(name)}: {left} moments left")
