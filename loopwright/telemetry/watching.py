"""The watch over a run's models and tools: they work as before, and tell when they do.

What is made of that is `recording`'s.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    SchemaSupport,
    StreamEnd,
    StreamEvent,
    StreamPiece,
)
from loopwright.telemetry.steps import Step
from loopwright.tools.contract import Execute, JsonObject, Tool, ToolContext, ToolResult


class Watch(Protocol):
    """Who is told."""

    def model_begins(self, provider: Provider, request: ModelRequest) -> Step:
        """A request is sent."""
        ...

    def first_piece(self, step: Step) -> None:
        """The answer begins to come; only the first time counts."""
        ...

    def model_ends(self, step: Step, **data: Any) -> None:
        """It was answered (`answer`), or failed (`error`)."""
        ...

    def body(self, call_id: str) -> AbstractContextManager[object]:
        """What is entered around the body of a tool."""
        ...

    def secrets(self, values: Sequence[str]) -> None:
        """Keys that the run uses."""
        ...


class WatchedProvider(Provider):
    """A provider that tells of its requests and of the keys that it sends."""

    def __init__(self, provider: Provider, watch: Watch) -> None:
        self.id = provider.id
        self.provider, self._watch = provider, watch
        self._window: int | None = None
        self._tell_secrets()

    def context_window(self, model: str) -> int | None:
        """The provider's own."""
        self._window = self.provider.context_window(model)
        return self._window

    async def validate_auth(self, api_key: str | None = None) -> None:
        """The provider's own."""
        await self.provider.validate_auth(api_key)

    def schema_support(self, model: str) -> SchemaSupport:
        """The provider's own."""
        return self.provider.schema_support(model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The provider's own; the end is told before it is passed on."""
        if request.api_key:
            self._watch.secrets([request.api_key])
        step = self._watch.model_begins(self.provider, request)
        step.data["context_window"] = self._window
        try:
            async for event in self.provider.stream(request):
                if isinstance(event, StreamPiece):
                    self._watch.first_piece(step)
                elif isinstance(event, StreamEnd):
                    self._tell_secrets()
                    self._watch.model_ends(step, answer=event.message)
                yield event
        except GeneratorExit:  # nobody wants the rest of it
            self._watch.model_ends(step, unfinished=True)
            raise
        except BaseException as error:
            told = {"kind": type(error).__name__, "message": str(error)}
            self._watch.model_ends(step, error=told)
            raise

    def _tell_secrets(self) -> None:
        """A provider that holds keys says so in a method of its own; the contract does not ask."""
        tell = getattr(self.provider, "secrets", None)
        if callable(tell):
            self._watch.secrets(tell())


def watched_tools(tools: Iterable[Tool], watch: Watch) -> tuple[Tool, ...]:
    """The tools, telling when their bodies run; equal for whoever compares them."""
    return tuple(replace(tool, execute=_WatchedBody(tool.execute, watch)) for tool in tools)


@dataclass(frozen=True)
class _WatchedBody:
    execute: Execute
    watch: Watch = field(compare=False)

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        with self.watch.body(context.call_id):
            return await self.execute(arguments, context)
