"""How an event leaves a run: numbered, shown, written to the stream, then heard by each listener.

Which events there are and when they happen is not decided here.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.messages import AnyMessage

from loopwright.events import AgentEnd, AnyEvent, MessageEnd, TurnEnd

Listener = Callable[[AnyEvent], Awaitable[None] | None]
Sink = Callable[[AnyEvent], None]

COMPLETE = (MessageEnd, TurnEnd, AgentEnd)
"""Events that say that something is done: who follows the stream may count on its being stored."""


class Listeners:
    """The subscribers of an agent, in the order in which they came.

    One that is added while an event is delivered hears that event too; one removed before its
    turn does not (S2-08).
    """

    def __init__(self) -> None:
        self._by_token: dict[int, Listener] = {}
        self._next = 0

    def add(self, listener: Listener) -> Callable[[], None]:
        """Subscribe; the returned function removes it and may be called twice."""
        token, self._next = self._next, self._next + 1
        self._by_token[token] = listener
        return lambda: (self._by_token.pop(token, None), None)[1]

    def __iter__(self) -> Iterator[Listener]:
        heard = -1
        while heard < self._newest():  # another pass for those that were added meanwhile
            for token in [token for token in self._by_token if token > heard]:
                heard = token
                if token in self._by_token:
                    yield self._by_token[token]

    def _newest(self) -> int:
        """The token of the one that came last, -1 if there is none."""
        return next(reversed(self._by_token), -1)


class View(Protocol):
    """Something that shows the state of a run between its events; see `live.LiveState`."""

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """Show the transcript that the run starts with."""
        ...

    def apply(self, event: AnyEvent) -> None:
        """Follow one event."""
        ...


@dataclass
class Emitter:
    """Gives every event of one run the next number and delivers it (design.md §7).

    Order: number, apply to the views, write to the stream, tell callback handlers, then await the
    listeners one by one.
    A listener that raises ends the run as a fault; the ones behind it do not hear the event.

    The stream may lead to another process, so an event of `COMPLETE` and what follows it wait for
    `release`: they leave when the step that they come from is committed. Listeners do not wait.
    """

    run_id: str
    listeners: Listeners
    views: list[View] = field(default_factory=list)
    write: Sink = lambda event: None
    dispatch: Callable[[AnyEvent], Awaitable[None]] | None = None
    """Tells callback handlers too, if one listens."""

    sequence: int = 0
    """The number of the next event."""

    held: list[AnyEvent] = field(default_factory=list)
    """What was not written to the stream yet, because it is not stored yet."""

    async def emit(self, event: AnyEvent, *, stored: bool = False) -> None:
        """Deliver `event`. Numbering, showing and writing happen before the first await.

        `stored` says that what it tells of survives a kill already.
        """
        numbered: AnyEvent = event.numbered(self.run_id, self.sequence)
        self.sequence += 1
        for view in self.views:
            view.apply(numbered)
        if self.held or (isinstance(event, COMPLETE) and not stored):
            self.held.append(numbered)
        else:
            self.write(numbered)
        if self.dispatch is not None:
            await self.dispatch(numbered)
        for listener in self.listeners:
            outcome: Any = listener(numbered)
            if inspect.isawaitable(outcome):
                await outcome

    def release(self) -> None:
        """Write what was held: everything that the run has told so far is committed."""
        held, self.held = self.held, []
        for event in held:
            self.write(event)
