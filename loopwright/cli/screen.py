"""How a run looks in a terminal: an event in, a few harmless characters out.

What the characters may be is decided in `text`; which events there are in `loopwright.events`.
"""

import sys
from collections.abc import Callable

from langchain_core.messages import AIMessage
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from loopwright.cli.text import call_text, clean, one_line, plain_text
from loopwright.events import (
    AgentEnd,
    AgentStart,
    AnyEvent,
    Compaction,
    Fallback,
    MessageEnd,
    MessageUpdate,
    QueueUpdate,
    Repair,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
)

REPAIRS = {
    "synthesized": "calls without a result marked as interrupted",
    "dropped_orphans": "results without a call left out",
    "deduplicated": "messages that were there twice",
    "moved": "results put behind their call",
    "renamed": "results given their call's name",
    "fresh_ids": "calls given an id of their own",
    "recovered": "results taken from the journal",
    "identified": "messages given an id",
}
"""What the counts of a repair mean to a reader."""

ADVICE = {
    "failed": "the next prompt on this thread works",
    "limit": "prompt again to go on",
    "cancelled": "what was finished is stored; prompt again to go on",
    "interrupted": "it waits for an answer",
}


class Screen:
    """Prints to one stream. Plain text where the stream is no terminal or colours are unwanted.

    Nothing is wrapped or cut to the terminal's width, so that a `file:line` can be copied.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
        self._in_line = False

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print a text on lines of its own."""
        self.end_line()
        self._print(f"{clean(text)}\n", style)

    def piece(self, text: str) -> None:
        """Print a piece of a text that goes on."""
        safe = clean(text)
        if safe:
            self._print(safe)
            self._in_line = not safe.endswith("\n")

    def end_line(self) -> None:
        """End a text that was printed in pieces."""
        if self._in_line:
            self._print("\n")
            self._in_line = False

    def _print(self, text: str, style: str | None = None) -> None:
        # As a segment and not as a text, which would wrap lines and turn tabs into blanks.
        segment = Segment(text, Style.parse(style) if style else None)
        self._console.print(Segments([segment]), end="", crop=False)


class RunView:
    """Shows the events of one run: the model's text on `answer`, all the rest on `progress`."""

    def __init__(self, answer: Screen, progress: Screen) -> None:
        self._answer, self._progress = answer, progress
        self._streamed: set[str] = set()
        self._calls: dict[str, int] = {}
        self._shown: dict[type, Callable[..., None]] = {
            AgentStart: self._agent_start,
            MessageUpdate: self._message_update,
            MessageEnd: self._message_end,
            ToolExecutionStart: self._tool_start,
            ToolExecutionEnd: self._tool_end,
            Repair: self._repair,
            Compaction: self._compaction,
            Retry: self._retry,
            Fallback: self._fallback,
            QueueUpdate: self._queue,
        }

    def show(self, event: AnyEvent) -> None:
        """Print what this event has to say; most say nothing."""
        shown = self._shown.get(type(event))
        if shown is not None:
            shown(event)

    def _agent_start(self, event: AgentStart) -> None:
        if event.resumed_from:
            self._note("the last run of this thread did not end; this one carries on from it")

    def _message_update(self, event: MessageUpdate) -> None:
        if event.update == "text_delta":
            self._streamed.add(event.message_id)
            self._answer.piece(event.delta)

    def _message_end(self, event: MessageEnd) -> None:
        if not isinstance(event.message, AIMessage):
            return
        if event.message.id not in self._streamed:
            self._answer.piece(plain_text(event.message.content))
        self._answer.end_line()

    def _tool_start(self, event: ToolExecutionStart) -> None:
        self._answer.end_line()
        number = self._calls[event.tool_call_id] = len(self._calls) + 1
        self._progress.line(f"-> {number}  {call_text(event.tool_name, event.arguments)}", "cyan")

    def _tool_end(self, event: ToolExecutionEnd) -> None:
        lines = [line for line in plain_text(event.content).split("\n") if line.strip()]
        first = one_line(lines[0], 80) if lines else "(no text)"
        more = f" ... ({len(lines):,} lines)" if len(lines) > 1 else ""
        word, style = ("error", "red") if event.is_error else ("ok", "green")
        number = self._calls.get(event.tool_call_id, "?")
        self._progress.line(f"<- {number}  {word}: {first}{more}", style)

    def _repair(self, event: Repair) -> None:
        counts = ((REPAIRS.get(name, name), count) for name, count in event.report.items())
        done = ", ".join(f"{words}: {count}" for words, count in counts if count)
        self._note(f"the stored transcript was repaired ({done})")

    def _compaction(self, event: Compaction) -> None:
        self._note(f"context compacted from {event.tokens_before} to {event.tokens_after} tokens")

    def _retry(self, event: Retry) -> None:
        self._note(f"retry {event.attempt} in {event.wait:.1f} s: {one_line(event.reason)}")
        self._void(event.message_id)

    def _fallback(self, event: Fallback) -> None:
        self._note(f"{event.to_model} is asked from here on: {one_line(event.reason)}")
        self._void(event.message_id)

    def _void(self, message_id: str | None) -> None:
        """Say that what was printed of a message does not count."""
        if message_id in self._streamed:
            self._streamed.discard(message_id)
            self._note("the answer begins anew; its text above is void")

    def _queue(self, event: QueueUpdate) -> None:
        messages = "message" if event.delivered == 1 else "messages"
        self._note(f"{event.delivered} queued {messages} delivered, {event.waiting} waiting")

    def _note(self, text: str) -> None:
        self._answer.end_line()
        self._progress.line(f"-- {text}", "yellow")


def ending(end: AgentEnd | None) -> str:
    """How a run ended, in one line; None: there was none, for the prompt was queued."""
    if end is None:
        return "queued as a follow-up of the run that goes on"
    words = f"{end.status} ({end.reason})" if end.reason else end.status
    words += f", {end.turns} turn{'' if end.turns == 1 else 's'}"
    if end.error:
        words += f": {one_line(end.error['message'], 300)} [{end.error['kind']}]"
    advice = ADVICE.get(end.status)
    return f"{words}; {advice}" if advice else words


def tolerate_any_encoding() -> None:
    """Print characters that the streams' encoding lacks as escapes instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
