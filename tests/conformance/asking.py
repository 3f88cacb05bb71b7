"""One prompt to an agent over the real HTTP server and the real client, in virtual time.

What the server answers is a case's; what became of it is read from events, result and requests.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright import Agent, RunResult, Settings
from loopwright.clock import Clock
from loopwright.events import AnyEvent, Compaction, Retry
from loopwright.nodes.compact import INSTRUCTION
from loopwright.state.messages import ERROR, failure_of, stop_reason
from loopwright.testing import OpenAIServer, VirtualClock
from loopwright.testing.server import Reply
from loopwright.tools.contract import Tool

SUMMARY = "What was said so far."
THREAD = "asked"
LONG: tuple[str, ...] = tuple(f"Earlier message {number}." for number in range(1, 5))
"""Prompts of a thread whose older part can be summarised."""

CLASSES = {"retry": "retryable", "fatal": "non_retryable", "compact": "context_overflow"}


@dataclass
class Asked:
    """What became of a prompt."""

    result: RunResult
    events: list[AnyEvent]
    bodies: list[dict[str, Any]]
    """The requests of the prompt's run, without those for a summary."""

    ledger: list[AnyMessage]
    waits: list[float] = field(default_factory=list)
    """What was really slept, in virtual seconds."""

    @property
    def retries(self) -> list[Retry]:
        """The retries that were told, in order."""
        return [event for event in self.events if isinstance(event, Retry)]

    @property
    def compactions(self) -> int:
        """How often the context was made smaller."""
        return sum(isinstance(event, Compaction) for event in self.events)

    @property
    def kind(self) -> str | None:
        """What the first failure was called: by its retry, else by the stored error."""
        if self.compactions:
            return "context_overflow"
        return self.retries[0].kind if self.retries else (self.result.error or {}).get("kind")

    @property
    def action(self) -> str:
        """What the run did about its first failure."""
        if self.compactions or self.kind == "context_overflow":
            return "compact"
        return "retry" if self.retries else "fatal"

    @property
    def failed(self) -> AIMessage:
        """The failed answer that is stored."""
        return next(m for m in self.ledger if stop_reason(m) == ERROR and isinstance(m, AIMessage))

    @property
    def retry_after(self) -> float | None:
        """The wait that the stored error names."""
        error = failure_of(self.failed)
        return None if error is None else error.retry_after


class SteppedClock(VirtualClock):
    """Stands still while a request goes on, and jumps over a wait between two requests."""

    async def sleep(self, seconds: float) -> None:
        """Pass the time at once. Nothing else of a run without a stall timeout sleeps."""
        self.sleeps.append(seconds)
        self.advance(seconds)


async def ask(
    reply: Callable[[int, dict[str, Any]], Reply],
    *,
    settings: Settings | None = None,
    now: float = 0.0,
    tools: Iterable[Tool] = (),
    history: Sequence[str] = (),
    summary: Callable[[], Reply] = lambda: SUMMARY,
    model: Callable[[str], BaseChatModel] | None = None,
    listen: Callable[[Agent, AnyEvent], Awaitable[None]] | None = None,
    clock: VirtualClock | None = None,
    server_clock: Clock | None = None,
) -> Asked:
    """Run a prompt behind a history. `reply` is given the number of the request from 0 on, and its
    body; requests for a summary are answered apart.
    """
    events: list[AnyEvent] = []
    bodies: list[dict[str, Any]] = []
    began = False

    def answer(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["content"] == INSTRUCTION:
            return summary()
        if not began:
            return "Noted."
        bodies.append(body)
        return reply(len(bodies) - 1, body)

    settings = settings or Settings(stall_timeout=None, compaction_tail=2)
    clock = clock or SteppedClock(now)
    async with OpenAIServer(iter(lambda: answer, None), clock=server_clock) as server:
        made = model(server.base_url) if model else client(server.base_url)
        async with Agent(made, tools, thread=THREAD, settings=settings, clock=clock) as agent:
            for text in history:
                await agent.prompt(text)
            began = True
            run = agent.prompt("Work.")
            async for event in run:
                events.append(event)
                if listen is not None:
                    await listen(agent, event)
            return Asked(await run, events, bodies, agent.messages(), list(clock.sleeps))


def client(url: str, **options: Any) -> ChatOpenAI:
    """The real client on this address; it sends everything once."""
    return ChatOpenAI(
        model="test-model",
        base_url=url,
        api_key=SecretStr("test-key"),
        max_retries=0,
        stream_usage=True,
        **options,
    )
