"""Pi's agent core (S2): its policies, its exact sentences, its way of changing a context in place.

Everything else about its control flow is the default's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.agent import Agent
from loopwright.errors import BusyThreadError, LoopwrightError
from loopwright.hooks import Hooks, KeptContext, Messages, NextTurn, TurnContext, settled
from loopwright.loops import LoopStream
from loopwright.loops import agent_loop as _agent_loop
from loopwright.loops import agent_loop_continue as _agent_loop_continue
from loopwright.ongoing import Ongoing
from loopwright.queueing import PromptOptions
from loopwright.runs import Dependencies
from loopwright.settings import Limits, Settings
from loopwright.signals import AbortSignal
from loopwright.state.log import CallbackLog
from loopwright.state.messages import Prompt, as_messages
from loopwright.tools.arguments import ArgumentRules
from loopwright.wording import Wording

WORDING = Wording(
    unknown_tool="Tool {name} not found",
    cut_off=(
        'Tool call "{name}" was not executed: the response hit the output token limit, so its '
        "arguments may be truncated. Re-issue the tool call with complete arguments."
    ),
)
COERCION = ArgumentRules(fill_nulls=True)
UNBOUNDED = Limits(turns=1_000_000_000, length_rounds=None)


class Refused(LoopwrightError):
    """Pi's refusal of a call, in Pi's words."""


def settings_of(settings: Settings | None) -> Settings:
    """The settings with what Pi pins: no turn limit, a run may repeat itself, open calls stay open,
    nothing is repaired, an empty answer is one, cut calls may be asked for again and again, no
    request is sent again and none is given up.
    """
    return replace(
        settings or Settings(),
        cancel_policy="leave",
        repair_policy="off",
        repetition="off",
        empty_answers="keep",
        retries=0,
        stall_timeout=None,
        limits=UNBOUNDED,
    )


class PiAgent(Agent):
    """An agent that behaves as Pi's `Agent`: `messages` is the transcript it starts with."""

    def __init__(
        self,
        model: Any = None,
        tools: Iterable[Any] = (),
        system_prompt: str = "",
        *,
        messages: Sequence[Any] = (),
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, tools, system_prompt, settings=settings_of(settings), **options)
        self._loaded = True
        self._live.messages.extend(as_messages(list(messages)))

    def prompt(self, prompt: Prompt, **options: Unpack[PromptOptions]) -> Ongoing:
        """As Agent's, refused in Pi's words."""
        try:
            return super().prompt(prompt, **options)
        except BusyThreadError:
            raise Refused(
                "Agent is already processing a prompt. Use steer() or followUp() to queue "
                "messages, or wait for completion."
            ) from None

    def continue_(self, *, thread: str | None = None) -> Ongoing:
        """As Agent's, but refused at once and in Pi's words."""
        if self.state.is_streaming:
            raise Refused("Agent is already processing. Wait for completion before continuing.")
        messages = self.state.messages
        if not messages:
            raise Refused("No messages to continue from")
        queued = self.queued("steering") or self.queued("follow_up")
        if isinstance(messages[-1], AIMessage) and not queued:
            raise Refused("Cannot continue from message role: assistant")
        return super().continue_(thread=thread)

    def reset(self) -> None:
        """As Agent's, refused in Pi's words."""
        if self.state.is_streaming:
            raise Refused("Agent is already processing. Wait for completion before resetting.")
        super().reset()

    def clear_steering(self) -> None:
        """Take back the waiting steering messages."""
        self.clear_queue("steering")

    def clear_follow_up(self) -> None:
        """Take back the waiting follow-up messages."""
        self.clear_queue("follow_up")

    def clear_queues(self) -> None:
        """Take back everything that waits."""
        self.clear_steering()
        self.clear_follow_up()

    def _dependencies(self) -> Dependencies:
        known = super()._dependencies()
        hooks = in_place(known.hooks)
        if hooks.prepare_next_turn is not None:
            hooks = replace(hooks, prepare_next_turn=self._prepare_next_turn)
        return replace(known, hooks=hooks, wording=WORDING, argument_rules=COERCION)

    async def _prepare_next_turn(self, turn: TurnContext) -> NextTurn | None:
        """Pi looks this hook up when it calls it, if one was set when the run began."""
        hook = self.hooks.prepare_next_turn
        if hook is None:
            return None
        change: NextTurn | None = await settled(hook(turn))
        return change


def agent_loop(prompts: Prompt, messages: Sequence[AnyMessage], **parts: Any) -> LoopStream:
    """Pi's `agentLoop`; see `loops.agent_loop`. `get_steering` and `get_follow_up` are functions
    that give the messages to deliver at a poll.
    """
    return _agent_loop(prompts, messages, **_pinned(parts))


def agent_loop_continue(messages: list[AnyMessage], **parts: Any) -> LoopStream:
    """Pi's `agentLoopContinue`, refused in its words; see `loops.agent_loop_continue`."""
    if not messages:
        raise Refused("Cannot continue: no messages in context")
    if isinstance(messages[-1], AIMessage):
        raise Refused("Cannot continue from message role: assistant")
    return _agent_loop_continue(messages, **_pinned(parts))


def _pinned(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a loop with what Pi pins; polls take all that a callable gives."""
    steering, follow_up = parts.pop("get_steering", None), parts.pop("get_follow_up", None)
    settings = replace(
        settings_of(parts.pop("settings", None)), steering_mode="all", follow_up_mode="all"
    )
    hooks = in_place(parts.pop("hooks", None) or Hooks())
    log = CallbackLog({"steering": steering, "follow_up": follow_up})
    pinned = {"hooks": hooks, "log": log, "wording": WORDING, "argument_rules": COERCION}
    return {**parts, "settings": settings, **pinned}


def in_place(hooks: Hooks) -> Hooks:
    """The hooks with Pi's rule that a `transform_context` which changes the list it was given
    changes the context for the rest of the run.
    """
    hook = hooks.transform_context
    return hooks if hook is None else replace(hooks, transform_context=_keeping(hook))


def _keeping(hook: Callable[[Messages, AbortSignal], Any]) -> Callable[..., Any]:
    async def transform(messages: Messages, signal: AbortSignal) -> Messages | KeptContext:
        before = list(messages)
        answer: Messages = await settled(hook(messages, signal))
        same = len(before) == len(messages) and all(map(lambda a, b: a is b, before, messages))
        return answer if same else KeptContext(messages=list(messages), request=list(answer))

    return transform
