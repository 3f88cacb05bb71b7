"""The messages of a request: the whole list at once, or message by message.

What one message looks like is said in `messages`, what servers take in `dialect`.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from loopwright.errors import RequestPart
from loopwright.providers.wire.blocks import Block
from loopwright.providers.wire.images import batch_message
from loopwright.providers.wire.messages import (
    answer,
    prompt_message,
    result,
    user,
    with_clean_ids,
    without,
)
from loopwright.providers.wire.openai import openai_form
from loopwright.providers.wire.target import Target
from loopwright.state.messages import ERROR, stop_reason
from loopwright.state.repair import repair

SENT_TYPES = (HumanMessage, AIMessage, ToolMessage)
"""The messages of a ledger that are sent; stored system rows and other roles are not."""

ANYONE = Target()
"""The target of a request of which only the usual form is known."""


def request_messages(
    system_prompt: str, messages: Sequence[AnyMessage], target: Target = ANYONE
) -> list[BaseMessage]:
    """The messages of a request: safe to send, in order, behind the system prompt if there is one.

    Contract (S1-04, S3-04, S3-05): `messages` is not changed. User, assistant and tool messages
    are sent, stored system rows and other roles are not; an assistant message of which nothing may
    be sent (a failed answer, another model's thinking) is left out. Pairing is made valid for
    sending, so a call without a result is answered by the interrupted marker. A message carries
    only what servers know (content, calls, call id, name), and nothing in it breaks JSON or UTF-8.
    Messages that are fit to send as they are stay the same objects.
    """
    known = [m for m in messages if isinstance(m, SENT_TYPES)]
    paired, _ = repair([with_clean_ids(message) for message in known])
    form = WireForm(target)
    for message in paired:
        form.add(message)
    return [*prompt_message(system_prompt), *form.messages()]


def api_messages(messages: Sequence[AnyMessage], system_prompt: str) -> list[dict[str, Any]]:
    """The messages of a request as an OpenAI-compatible server takes them (S3-04)."""
    return openai_form(request_messages(system_prompt, messages))


class WireForm:
    """The messages of a request as they are added. Pairing is the caller's: results stand behind
    their calls.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sent: list[BaseMessage] = []
        self._moved: list[Block] = []
        """What the results of the last batch show, until the message behind them is known."""
        self._behind: HumanMessage | None = None

    def add(self, message: AnyMessage) -> None:
        """Put one more message behind the others."""
        if isinstance(message, ToolMessage):
            form, moved = result(message, self._target, len(self._moved) // 2)
            self._sent.append(form)
            if moved:
                self._moved, self._behind = [*self._moved, *moved], None
            return
        self._sent += self._batch()
        self._moved, self._behind = [], None
        if isinstance(message, AIMessage):
            self._leave_out(withheld_of(message))
            sent = answer(message, self._target)
            self._sent += [sent] if sent is not None else []
        elif isinstance(message, HumanMessage):
            self._sent.append(user(message, self._target))

    def messages(self) -> list[BaseMessage]:
        """All messages so far; a fresh list."""
        return [*self._sent, *self._batch()]

    def _batch(self) -> list[BaseMessage]:
        """The message behind the results of the last batch, if they show anything."""
        if self._moved and self._behind is None:
            self._behind = batch_message(self._moved)
        return [] if self._behind is None else [self._behind]

    def _leave_out(self, parts: frozenset[RequestPart]) -> None:
        """A server that has answered only without these parts is not sent them again."""
        if parts:
            left = (without(message, parts) for message in self._sent)
            self._sent = [message for message in left if message is not None]


def withheld_of(message: AIMessage) -> frozenset[RequestPart]:
    """The parts of its request that an answer was made without; a failure shows nothing of them."""
    if stop_reason(message) == ERROR:
        return frozenset()
    said = message.response_metadata.get("withheld")
    return frozenset(said) if isinstance(said, list) else frozenset()
