"""Orkas' product loop (S1): a turn is a stream of few plain events, and its end is the result.

Everything else about its control flow is the default's. What a product keeps beside its threads
(memory, a knowledge base) is not here.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, TypedDict, get_args

from langchain_core.messages import AnyMessage, ToolMessage

from loopwright import background
from loopwright.agent import Agent
from loopwright.errors import ModelErrorKind
from loopwright.events import (
    AgentStart,
    AnyEvent,
    Compaction,
    MessageUpdate,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from loopwright.outcome import RunResult
from loopwright.providers.failures import classify
from loopwright.settings import Settings
from loopwright.spending import Usage
from loopwright.state.messages import Prompt
from loopwright.tools.contract import JsonObject, Tool, ToolContext, ToolResult
from loopwright.tools.registry import registry

MAX_STEPS = 100
"""Model turns of one message (K4)."""

UNAVAILABLE = "PROVIDER_UNAVAILABLE"
"""The code of failures that may pass, once all retries are used up,"""

CODES: dict[ModelErrorKind, str] = {
    "auth": "AUTH",
    "bad_request": "BAD_REQUEST",
    "billing": "BILLING",
    "content_policy": "CONTENT_POLICY",
    "context_overflow": "CONTEXT_OVERFLOW",
    "storage_full": "STORAGE_FULL",
    "tls": "TLS",
}
"""the codes of the others (S1-12, S1-13),"""

INTERNAL = "INTERNAL"
"""and that of a fault which was no provider's: a hook or listener that raised."""

TRANSIENT: frozenset[ModelErrorKind] = frozenset(
    {"network", "overloaded", "rate_limit", "server_error", "timeout"}
)
"""Kinds of failure after which a tool may well work the next time."""


class TextDelta(TypedDict):
    """A piece of the answer."""

    type: Literal["text_delta"]
    text: str


class ToolStart(TypedDict):
    """A tool is called; `input` as the model gave it."""

    type: Literal["tool_start"]
    id: str
    name: str
    input: Any


class ToolEnd(TypedDict):
    """A tool has answered, with an error too: `result` is the text that the model reads."""

    type: Literal["tool_end"]
    id: str
    name: str
    result: str


class Compacted(TypedDict):
    """The older part of the context was summarised for the model."""

    type: Literal["compaction"]
    tokensBefore: int
    tokensAfter: int


class Retried(TypedDict):
    """The request is sent again; the text since the last other event is void (K11)."""

    type: Literal["retry"]
    attempt: int
    reason: str


class ToolFailures(TypedDict):
    """How many calls were answered with an error: ones that may work the next time, and others."""

    transient: int
    permanent: int


class Turn(TypedDict):
    """What a message came to.

    `status` is as in RunResult. `code` is None where the run was completed or cancelled, else one
    of CODES, UNAVAILABLE, or the rule that ended it (MAX_TURNS and so on).
    """

    text: str
    status: str
    code: str | None
    messages: list[AnyMessage]
    steps: int
    usage: Usage
    toolFailures: ToolFailures


class Done(TypedDict):
    """The last event."""

    type: Literal["done"]
    result: Turn


OrkasEvent = TextDelta | ToolStart | ToolEnd | Compacted | Retried | Done


def settings_of(settings: Settings | None, max_steps: int) -> Settings:
    """The settings with what Orkas pins: its steps, open calls answered at a cancel, another
    model's visible thinking sent as text (S1-20).
    """
    chosen = settings or Settings()
    limits = replace(chosen.limits, turns=max_steps)
    return replace(chosen, cancel_policy="record", foreign_thinking="text", limits=limits)


class OrkasAgent(Agent):
    """An agent whose main interface is `turn`. Tools run one after the other, unless all of a batch
    were declared with `execution_mode="parallel"` (S1-05). `options` are those of `Agent`.
    """

    def __init__(
        self,
        model: Any = None,
        tools: Iterable[Any] = (),
        system_prompt: str | None = None,
        *,
        max_steps: int = MAX_STEPS,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        self._transient: dict[str, set[str]] = {}
        pinned = settings_of(settings, max_steps)
        chosen = [self._watched(tool) for tool in registry(tools).tools]
        super().__init__(model, chosen, system_prompt, settings=pinned, **options)

    async def turn(
        self, message: Prompt, *, images: Sequence[Any] = (), thread: str | None = None
    ) -> AsyncIterator[OrkasEvent]:
        """Run one message; `done` is the last event, whatever ended the run (S1-01, S1-02).

        Raises BusyThreadError, InputError and ConfigurationError before the first event. Leaving
        the stream early does not end the run: `abort` does.
        """
        ongoing = self.prompt(message, images=images, thread=thread)
        transient, failures = set[str](), Counter[str](transient=0, permanent=0)
        run = ""
        try:
            async for event in ongoing:
                if isinstance(event, AgentStart):
                    run = event.run_id
                    self._transient[run] = transient
                if isinstance(event, ToolExecutionEnd) and event.is_error:
                    passing = event.tool_call_id in transient
                    failures["transient" if passing else "permanent"] += 1
                for told in projected(event):
                    yield told
            yield Done(type="done", result=_turn(await ongoing, failures))
        finally:
            self._transient.pop(run, None)

    def ask(
        self, message: Prompt, *, images: Sequence[Any] = (), thread: str | None = None
    ) -> Turn:
        """The same for blocking callers: drains `turn` and gives the result of its `done`."""
        events = list(background.iterate(lambda: self.turn(message, images=images, thread=thread)))
        last = events[-1]
        assert last["type"] == "done"
        return last["result"]

    def _watched(self, tool: Tool) -> Tool:
        """The tool with a note of what its failures are, sequential unless it says otherwise."""

        async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
            with _Noting(self._transient.get(context.run_id, set()), context.call_id):
                return await tool.execute(arguments, context)

        return replace(tool, execute=execute, execution_mode=tool.execution_mode or "sequential")


@dataclass(frozen=True)
class _Noting:
    """Notes a call whose body fails in a way that may pass (S1-14). What it raises goes on."""

    transient: set[str]
    call: str

    def __enter__(self) -> None:
        """Nothing is held."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, asyncio.CancelledError):  # it took longer than a tool may
            self.transient.add(self.call)
        elif isinstance(error, Exception):
            found = classify(error, now=0)  # when to try again is the model's to decide
            if found is not None and found.kind in TRANSIENT:
                self.transient.add(self.call)


def projected(event: AnyEvent) -> Iterator[OrkasEvent]:
    """An event of a run in Orkas' words; most of them are not told."""
    if isinstance(event, MessageUpdate) and event.update == "text_delta":
        yield TextDelta(type="text_delta", text=event.delta)
    elif isinstance(event, ToolExecutionStart):
        yield ToolStart(
            type="tool_start", id=event.tool_call_id, name=event.tool_name, input=event.arguments
        )
    elif isinstance(event, ToolExecutionEnd):
        text = str(ToolMessage(event.content, tool_call_id=event.tool_call_id).text)
        yield ToolEnd(type="tool_end", id=event.tool_call_id, name=event.tool_name, result=text)
    elif isinstance(event, Compaction):
        yield Compacted(
            type="compaction", tokensBefore=event.tokens_before, tokensAfter=event.tokens_after
        )
    elif isinstance(event, Retry):
        yield Retried(type="retry", attempt=event.attempt, reason=event.reason)


def code_of(result: RunResult) -> str | None:
    """Orkas' word for why a run has no answer; None for a completed or cancelled one."""
    if result.status in ("completed", "cancelled"):
        return None
    if result.error is None:
        return result.reason.upper()
    kind: Any = result.error["kind"]
    if kind in CODES:
        return CODES[kind]
    if kind in get_args(ModelErrorKind) and kind != "bug":
        return UNAVAILABLE
    return str(kind).upper() if str(kind).islower() else INTERNAL


def _turn(result: RunResult, failures: Counter[str]) -> Turn:
    return Turn(
        text=result.final_text,
        status=result.status,
        code=code_of(result),
        messages=result.messages,
        steps=result.turns,
        usage=result.usage,
        toolFailures=ToolFailures(transient=failures["transient"], permanent=failures["permanent"]),
    )
