"""The loop for callers who own their transcript: no thread, no database, the same graph.

Everything an agent adds (storage, queues, settings that may change) lives in `agent`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.errors import InputError
from loopwright.events import AnyEvent, MessageEnd
from loopwright.graph.assembly import build
from loopwright.hooks import Hooks
from loopwright.ongoing import Ongoing, OngoingRun
from loopwright.providers.contract import Provider
from loopwright.runs import Dependencies, Run
from loopwright.settings import Settings
from loopwright.signals import AbortSignal
from loopwright.state.log import Log, MemoryLog
from loopwright.state.messages import Prompt, as_messages, identified, new_id
from loopwright.tools.arguments import DEFAULT_RULES, ArgumentRules
from loopwright.tools.registry import registry
from loopwright.wording import Wording


class LoopStream:
    """A loop that is going on: iterate it for its events, await `result` for what it produced.

    The producer does not wait for the consumer.
    """

    def __init__(self, ongoing: Ongoing) -> None:
        self._ongoing = ongoing

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return aiter(self._ongoing)

    async def result(self) -> list[AnyMessage]:
        """The messages that the loop produced, the prompts included."""
        return (await self._ongoing).messages


def agent_loop(prompts: Prompt, messages: Sequence[AnyMessage], **parts: Any) -> LoopStream:
    """Run prompts on a copy of the caller's messages; must be called in an event loop.

    `parts` are those of `loop_dependencies`, and `signal`.
    """
    return _started({"messages": as_messages(prompts)}, _Owned(list(messages)), parts)


def agent_loop_continue(messages: list[AnyMessage], **parts: Any) -> LoopStream:
    """Go on from the caller's messages; what is produced is appended to the caller's own list.

    Raises InputError for an empty list and for one that ends with an assistant message.
    """
    if not messages:
        raise InputError("nothing to continue from: the list of messages is empty")
    if isinstance(messages[-1], AIMessage):
        raise InputError("nothing to continue from: the last message is an answer")
    return _started({"continue": True}, _Owned(messages), parts)


def loop_dependencies(
    *,
    models: Callable[[str], Provider],
    model: str,
    tools: Iterable[Any] = (),
    system_prompt: str = "",
    settings: Settings | None = None,
    hooks: Hooks | None = None,
    log: Log | None = None,
    wording: Wording | None = None,
    argument_rules: ArgumentRules = DEFAULT_RULES,
) -> Dependencies:
    """The parts of a loop: `models` gives the provider of `model`, `log` its queues."""
    chosen = Settings.from_json({**(settings or Settings()).to_json(), "model": model})
    return Dependencies(
        resolve=models,
        tools=registry(tools),
        system_prompt=system_prompt,
        settings=chosen,
        hooks=hooks or Hooks(),
        log=log or MemoryLog(),
        wording=wording or Wording(),
        argument_rules=argument_rules,
    )


class _Owned:
    """The caller's list as a view: complete messages join it."""

    def __init__(self, messages: list[AnyMessage]) -> None:
        self.messages = messages

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """The loop starts from the list itself."""

    def apply(self, event: AnyEvent) -> None:
        if isinstance(event, MessageEnd):
            self.messages.append(event.message)


def _started(given: Any, owned: _Owned, parts: dict[str, Any]) -> LoopStream:
    signal: AbortSignal | None = parts.pop("signal", None)
    graph = build(loop_dependencies(**parts))
    lease = graph.leases.claim(new_id(), signal=signal)
    run = Run.start(lease=lease, dependencies=graph.dependencies, views=[owned])
    run.transcript = identified(owned.messages, set())
    return LoopStream(OngoingRun(graph, run, given))
