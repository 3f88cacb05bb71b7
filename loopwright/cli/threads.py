"""`loopwright threads` and `loopwright show`: what is stored. Nothing is changed here."""

from typing import Annotated

import typer
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.agent import Agent
from loopwright.cli.opening import Database, database_path
from loopwright.cli.past import Given, moment, stored
from loopwright.cli.screen import Screen
from loopwright.cli.text import call_text, clean, decoded, one_line, plain_text
from loopwright.state.messages import calls, error_of

WIDEST = 40
"""Characters of the column with the ids; a longer id moves its own line only."""
SHORT = 12
"""Lines of a tool's result that are shown unless all are asked for."""


def threads(database: Database = None) -> None:
    """List the stored threads, the last used first."""
    screen, path = Screen(), database_path(database)
    found = []
    if path.exists():
        with Agent(database=path) as agent:
            found = [info for info in agent.threads() if info.messages]
    if not found:
        screen.line(f"no threads in {path}")
        return
    width = min(WIDEST, max(len(clean(info.id)) for info in found))
    for info in found:
        when = info.updated[:19].replace("T", " ")
        row = f"{clean(info.id):<{width}}  {when}  {info.messages:>5} messages"
        screen.line(f"{row}  {one_line(info.title, 60)}".rstrip())


def show(
    thread: Annotated[str, typer.Argument(help="Id of the thread; `threads` lists them.")],
    database: Database = None,
    full: Annotated[bool, typer.Option("--full", help="Show whole tool results.")] = False,
    at: Given = None,
) -> None:
    """Print the transcript of a thread, now or at a moment of its history."""
    name = decoded(thread)
    with stored(name, database) as agent:
        messages = agent.messages(at=moment(at))
    screen = Screen()
    for number, message in enumerate(messages, 1):
        _print_message(screen, number, message, full)


def _print_message(screen: Screen, number: int, message: AnyMessage, full: bool) -> None:
    failed = isinstance(message, ToolMessage) and message.status == "error"
    name = f" {message.name}" if isinstance(message, ToolMessage) and message.name else ""
    screen.line(f"[{number}] {message.type}{name}{' error' if failed else ''}", "bold")
    text = plain_text(message.content)
    if text.strip():
        screen.line(text if full or not isinstance(message, ToolMessage) else _shortened(text))
    for call in calls(message):
        screen.line(f"-> {call_text(call.name, call.arguments)}", "cyan")
    error = error_of(message) if isinstance(message, AIMessage) else None
    if error:
        screen.line(f"{error['kind']}: {one_line(error['message'], 300)}", "red")
    screen.line()


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) <= SHORT:
        return text
    return "\n".join([*lines[:SHORT], f"... and {len(lines) - SHORT} more lines (--full)"])
