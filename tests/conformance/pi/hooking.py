"""The hooks of a scenario: what the trace shows of each call, and what each answers.

Which of them an agent calls, and when, is the runtime's business.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, ChatMessage, HumanMessage

from loopwright.hooks import (
    AfterToolCall,
    BeforeToolCall,
    Hooks,
    NextTurn,
    ToolCallContext,
    TurnContext,
)
from loopwright.live import LiveState
from loopwright.signals import AbortSignal
from tests.conformance.pi.shorthand import (
    Json,
    message,
    parts,
    role_of,
    stop_of,
    text_block,
)
from tests.conformance.pi.world import Scripted, World, units

BEFORE_REQUEST = ("transformContext", "convertToLlm", "getApiKey")
"""Hooks of the model node: one that raises keeps it from sending its request."""

Shown = Callable[[], LiveState | None]
"""The public state of the agent, None in a raw loop."""


def hooks(world: World, specs: Json, state: Shown) -> Hooks:
    """The hooks with these specs; a hook that is not among them is not installed."""
    made = Hooks()
    for name, spec in specs.items():
        field, make = _MAKERS[name]
        if name == "prepareNextTurn" and "prepareNextTurnWithContext" in specs:
            continue  # only the other variant runs
        hook = make(_Hook(world, name, spec, state))
        made = replace(made, **{field: hook})
    return made


class _Hook:
    """One installed hook: it writes the trace and finds the fields that hold for this call."""

    def __init__(self, world: World, name: str, spec: Json, state: Shown) -> None:
        self._world, self._name, self._spec = world, name, spec
        self._state = state

    @property
    def state(self) -> LiveState | None:
        return self._state()

    async def of_call(self, entry: Json, context: ToolCallContext) -> Json:
        """Enter a hook around a tool call."""
        shown = {
            "hook": self._name,
            "id": context.call.id,
            **entry,
            "aborted": context.signal.aborted,
            "contextMessages": len(context.messages),
        }
        return await self._enter(shown, context.call.id, context.call.id)

    async def of_run(self, entry: Json) -> Json:
        """Enter any other hook."""
        number = self._world.hook_calls[self._name] + 1
        return await self._enter({"hook": self._name, "n": number, **entry}, str(number), None)

    async def _enter(self, shown: Json, mark: str, call_id: str | None) -> Json:
        self._world.hook_calls[self._name] += 1
        number = self._world.hook_calls[self._name]
        self._world.hooks.append(deepcopy(shown))
        self._world.log.append(f"hook:{self._name}:{mark}")
        fields = {
            **self._spec,
            **self._spec.get("byId", {}).get(call_id, {}),
            **self._spec.get("calls", {}).get(str(number), {}),
        }
        try:
            await self._obey(fields, call_id)
        except Scripted:
            self._world.faults_before_request += self._name in BEFORE_REQUEST
            raise
        return fields

    async def _obey(self, fields: Json, call_id: str | None) -> None:
        await self._world.fire("hook", self._name, id=call_id)
        if "delay" in fields:
            await units(fields["delay"])
        if "throw" in fields:
            raise Scripted(fields["throw"])


def _before_tool_call(hook: _Hook) -> Any:
    async def call(context: ToolCallContext) -> BeforeToolCall:
        entry: Json = {
            "name": context.call.name,
            "rawArgs": context.call.arguments,
            "args": context.arguments,
        }
        if hook.state is not None:
            messages = hook.state.messages
            entry["stateMessages"] = len(messages)
            entry["stateTail"] = role_of(messages[-1]) if messages else None
            entry["pending"] = sorted(hook.state.pending_tool_calls)
        fields = await hook.of_call(entry, context)
        context.arguments.update(fields.get("setArgs", {}))
        return BeforeToolCall(
            block=fields.get("block", False),
            reason=fields.get("reason", ""),
            terminate=fields.get("terminate"),
        )

    return call


def _after_tool_call(hook: _Hook) -> Any:
    async def call(context: ToolCallContext) -> AfterToolCall:
        result = context.result
        assert result is not None
        entry = {
            "args": context.arguments,
            "isError": result.is_error,
            "text": parts(result.content).get("text"),
            "terminate": result.terminate,
        }
        fields = await hook.of_call(entry, context)
        content: Any = [text_block(fields["text"])] if "text" in fields else None
        return AfterToolCall(
            content=[] if fields.get("emptyContent") else content,
            details=fields.get("details"),
            is_error=fields.get("isError"),
            terminate=fields.get("terminate"),
        )

    return call


def _turn(context: TurnContext) -> Json:
    return {
        "contextMessages": len(context.messages),
        "newMessages": len(context.new_messages),
        "stop": stop_of(context.message),
    }


def _should_stop_after_turn(hook: _Hook) -> Any:
    async def call(context: TurnContext) -> Any:
        entry = {**_turn(context), "toolResults": len(context.tool_results)}
        fields = await hook.of_run({**entry, "aborted": context.signal.aborted})
        return fields.get("value")

    return call


def _prepare_next_turn(hook: _Hook) -> Any:
    """The variant that an agent gives the signal only, and a raw loop the whole context."""

    async def call(context: TurnContext) -> NextTurn:
        shown = _turn(context) if hook.state is None else {}
        fields = await hook.of_run({**shown, "aborted": context.signal.aborted})
        return _next_turn(fields, context)

    return call


def _prepare_with_context(hook: _Hook) -> Any:
    async def call(context: TurnContext) -> NextTurn:
        fields = await hook.of_run({**_turn(context), "aborted": context.signal.aborted})
        return _next_turn(fields, context)

    return call


def _next_turn(fields: Json, context: TurnContext) -> NextTurn:
    swap = fields.get("context", {})
    messages = [message(short) for short in swap["messages"]] if "messages" in swap else None
    if messages is None and swap.keys() & {"keepLast", "append"}:
        messages = list(context.messages)
    if messages is not None:
        messages = _trimmed(messages, swap)
    return NextTurn(
        model=fields.get("model"),
        thinking_level=fields.get("thinkingLevel"),
        system_prompt=swap.get("systemPrompt"),
        messages=messages,
        tools=swap.get("tools"),
    )


def _trimmed(messages: list[AnyMessage], fields: Json) -> list[AnyMessage]:
    kept = messages[-fields["keepLast"] :] if fields.get("keepLast") else messages
    before, behind = _messages(fields, "prepend"), _messages(fields, "append")
    return [*before, *kept, *behind]


def _messages(fields: Json, key: str) -> list[AnyMessage]:
    """One message or a list of them in short form."""
    given = fields.get(key, [])
    return [message(short) for short in (given if isinstance(given, list) else [given])]


def _transform_context(hook: _Hook) -> Any:
    async def call(messages: list[AnyMessage], signal: AbortSignal) -> list[AnyMessage]:
        roles = [role_of(item) for item in messages]
        fields = await hook.of_run({"roles": roles, "aborted": signal.aborted})
        messages.extend(_messages(fields, "mutatePush"))
        return _trimmed(messages, fields)

    return call


def _convert_to_llm(hook: _Hook) -> Any:
    async def call(messages: list[AnyMessage]) -> list[AnyMessage]:
        fields = await hook.of_run({"roles": [role_of(item) for item in messages]})
        dropped, names = fields.get("drop", []), fields.get("rename", {})
        kept = [item for item in messages if role_of(item) not in dropped]
        return [_renamed(item, names.get(role_of(item))) for item in kept]

    return call


def _renamed(given: AnyMessage, role: str | None) -> AnyMessage:
    if role is None:
        return given
    if role == "user":
        return HumanMessage(given.content, id=given.id)
    return ChatMessage(role=role, content=given.content, id=given.id)


def _get_api_key(hook: _Hook) -> Any:
    async def call(provider: str) -> Any:
        return (await hook.of_run({"provider": provider})).get("value")

    return call


_MAKERS: dict[str, tuple[str, Callable[[_Hook], Any]]] = {
    "beforeToolCall": ("before_tool_call", _before_tool_call),
    "afterToolCall": ("after_tool_call", _after_tool_call),
    "shouldStopAfterTurn": ("should_stop_after_turn", _should_stop_after_turn),
    "prepareNextTurn": ("prepare_next_turn", _prepare_next_turn),
    "prepareNextTurnWithContext": ("prepare_next_turn", _prepare_with_context),
    "transformContext": ("transform_context", _transform_context),
    "convertToLlm": ("convert_to_llm", _convert_to_llm),
    "getApiKey": ("get_api_key", _get_api_key),
}
