"""What a tool is, what it is given and what it gives back.

How a tool is made from a function or a langchain tool lives in `functions` and `langchain`; how a
batch of calls runs lives in the `tool_batch` node.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from langchain_core.messages import AnyMessage
from langgraph.store.base import BaseStore

from loopwright.errors import ConfigurationError
from loopwright.signals import AbortSignal

JsonObject = dict[str, Any]
Effects = Literal["none", "idempotent", "unsafe"]
ExecutionMode = Literal["parallel", "sequential"]
Content = str | list[str | dict[str, Any]]
"""Text, or content blocks of langchain-core (text, image)."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What one tool call answers. Plain JSON values except `messages`.

    `details` is for people and programs and is not sent to the model. `terminate` asks to end the
    run; it counts only if every result of the batch says so (S2-06) and is never stored. `messages`
    are appended directly after all results of the batch (S1-06).
    """

    content: Content = ""
    details: Any = None
    is_error: bool = False
    terminate: bool | None = None
    messages: tuple[AnyMessage, ...] = ()
    usage: dict[str, Any] | None = None
    """What the call has cost, in the tool's own words; stored with the result."""

    added_tools: tuple[str, ...] = ()
    """Names of tools that this call made known; stored with the result."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a running tool may know and do.

    `update(partial)` reports progress from any thread; it never raises and is ignored once the
    call has its result. `state` is a copy of what the graph's state shows to tools: at least
    `{"messages": [...]}`, ending with the assistant message of this batch. `workspace` is the
    folder that file tools are confined to, with links resolved; None means that there is none.
    `idempotency_key` is the same for every attempt of this call with these arguments, also after a
    restart, and different for every other call and thread: what the `Idempotency-Key` header of an
    HTTP request wants, so that a service does once what it is told twice.
    """

    thread: str
    run_id: str
    call_id: str
    idempotency_key: str = ""
    signal: AbortSignal = field(default_factory=AbortSignal)
    workspace: Path | None = None
    update: Callable[[ToolResult | str], None] = lambda partial: None
    state: Mapping[str, Any] = field(default_factory=dict)
    store: BaseStore | None = None


Execute = Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool as the runtime sees it; where it came from does not matter (S1-16).

    `parameters` is a JSON schema of type object. `execute` gets arguments that fit it; whatever it
    raises becomes an error result, except LangGraph's own signals and a cancellation.
    `prepare_arguments` may rewrite the raw arguments before they are checked. `effects` says what
    running twice would mean: `none` (reads only), `idempotent`, or `unsafe` (the default): what an
    unsafe tool has started is never started again after a crash. `repeatable`: calling it again
    with the same arguments is its use (polling), no repetition. Raises ConfigurationError for any
    other word.
    """

    name: str
    description: str
    parameters: JsonObject
    execute: Execute
    execution_mode: ExecutionMode | None = None
    prepare_arguments: Callable[[Any], Any] | None = None
    effects: Effects = "unsafe"
    repeatable: bool = False

    def __post_init__(self) -> None:
        self._require("effects", *get_args(Effects))
        self._require("execution_mode", *get_args(ExecutionMode), None)

    def _require(self, name: str, *allowed: object) -> None:
        value = getattr(self, name)
        if value not in allowed:
            reason = f"{name} {value!r} is not one of {allowed}"
            raise ConfigurationError(f"tool {self.name!r}: {reason}", field="tools")


@dataclass(frozen=True)
class ToolRegistry:
    """Tools by name, in the order of registration. Never changed: a run keeps what it began with.

    Build one with `tools.registry.registry(...)`, which takes functions and langchain tools too.
    """

    tools: tuple[Tool, ...] = ()

    def get(self, name: str) -> Tool | None:
        """The tool of this name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def select(self, names: Sequence[str] | None) -> "ToolRegistry":
        """Only the named tools, in that order (all for None); names without a tool are left out."""
        if names is None:
            return self
        found = (self.get(name) for name in names)
        return ToolRegistry(tuple(tool for tool in found if tool is not None))

    def names(self) -> list[str]:
        """The names in order of registration."""
        return [tool.name for tool in self.tools]
