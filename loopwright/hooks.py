"""Where a user's code may take part in a run: one function per place, sync or async.

When each is called is decided by the nodes. A hook that raises ends the run as a fault, except the
ones around a tool call, whose exception becomes that call's error result (S2-07).
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.signals import AbortSignal
from loopwright.state.messages import Call
from loopwright.state.notes import shown
from loopwright.tools.contract import Content, JsonObject, ToolResult

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T


@dataclass(frozen=True, kw_only=True)
class ToolCallContext:
    """What the hooks around a tool call see.

    `messages` end at the batch's assistant message even in sequential mode: results join the
    context after the batch. `call` has the raw arguments; `arguments` is the checked copy that the
    tool gets, and `before_tool_call` may edit it in place (it is not checked again).
    """

    message: AIMessage
    call: Call
    arguments: JsonObject
    messages: list[AnyMessage]
    system_prompt: str
    signal: AbortSignal
    result: ToolResult | None = None
    """Only for `after_tool_call`."""


@dataclass(frozen=True, kw_only=True)
class BeforeToolCall:
    """Answer of `before_tool_call`: `block` keeps the tool from running.

    The model gets `reason` as the error result. `terminate` counts only together with `block`.
    """

    block: bool = False
    reason: str = ""
    terminate: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Answer of `before_tool_call`: a person has to say yes first. JSON values.

    The run ends `interrupted` before any body of the batch starts, holding all asks; it goes on by
    `Agent.resume({call id: "approve" | "reject" | {"decision": "edit", "arguments": ...}})`.
    """

    reason: str = ""
    details: Any = None


@dataclass(frozen=True, kw_only=True)
class AfterToolCall:
    """Answer of `after_tool_call`: each field that is not None replaces the result's, whole."""

    content: Content | None = None
    details: Any = None
    usage: dict[str, Any] | None = None
    is_error: bool | None = None
    terminate: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """The finished turn as `should_stop_after_turn` and `prepare_next_turn` see it; fresh lists."""

    message: AIMessage
    tool_results: list[ToolMessage]
    messages: list[AnyMessage]
    system_prompt: str
    new_messages: list[AnyMessage]
    signal: AbortSignal


@dataclass(frozen=True, kw_only=True)
class NextTurn:
    """Answer of `prepare_next_turn`; what is None stays. Lasts for the rest of the run, not longer.

    `messages` replaces what the model sees (the ledger keeps everything); later messages follow it.
    `tools` names the tools offered from now on.
    """

    model: str | None = None
    thinking_level: str | None = None
    system_prompt: str | None = None
    messages: list[AnyMessage] | None = None
    tools: list[str] | None = None
    plan: list[str] | None = None
    """Steps that replace the plan's, counted as a revision; the plan is the thread's and stays."""


Messages = list[AnyMessage]


@dataclass(frozen=True, kw_only=True)
class KeptContext:
    """Answer of `transform_context` that lasts: later requests of the run start from `messages`.

    `request` is what this one request is made of; None takes `messages`.
    """

    messages: Messages
    request: Messages | None = None


MODEL_ROLES = frozenset(("human", "ai", "tool"))
MODEL_TYPES = frozenset((HumanMessage, AIMessage, ToolMessage))


def keep_model_roles(messages: Messages) -> Messages:
    """The default `convert_to_llm`: user, assistant and tool messages and the notes of the loop, no
    custom roles.
    """
    if MODEL_TYPES.issuperset(map(type, messages)):  # the usual case, without a step per message
        return messages
    return [message for message in shown(messages) if message.type in MODEL_ROLES]


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """All hooks, each optional. Lists passed in are fresh: changing them changes nothing stored.

    Per request in this order: `transform_context`, `convert_to_llm`, `get_api_key`.
    """

    transform_context: (
        Callable[[Messages, AbortSignal], MaybeAwaitable[Messages | KeptContext]] | None
    ) = None
    """Gives the messages for one request, or for the rest of the run; sees custom roles."""

    convert_to_llm: Callable[[Messages], MaybeAwaitable[Messages]] = keep_model_roles
    """Maps ledger messages to what a model understands; replaces the default filter."""

    get_api_key: Callable[[str], MaybeAwaitable[str | None]] | None = None
    """A key for the provider of this name; a falsy answer falls back to the configured one."""

    before_tool_call: (
        Callable[[ToolCallContext], MaybeAwaitable[BeforeToolCall | Ask | None]] | None
    ) = None
    """Called when a call's arguments are checked and before any body of the batch starts."""

    after_tool_call: Callable[[ToolCallContext], MaybeAwaitable[AfterToolCall | None]] | None = None
    """Called for every body that ran, also one that raised; not for blocked or invalid calls."""

    should_stop_after_turn: Callable[[TurnContext], Any] | None = None
    """A truthy answer of any type ends the run after this turn; queues keep their content."""

    prepare_next_turn: Callable[[TurnContext], MaybeAwaitable[NextTurn | None]] | None = None
    """Called only when another turn is certain, before its `turn_start`."""


async def settled(value: MaybeAwaitable[T]) -> T:
    """The value of a hook that may be sync or async."""
    if inspect.isawaitable(value):
        return await value
    return value
