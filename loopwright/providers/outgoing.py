"""The requests of one run: what was made fit to send once is not made again for the next request.

What may be sent, and in which form, is said in `wire`.
"""

from collections.abc import Sequence
from operator import is_

from langchain_core.messages import AnyMessage, BaseMessage

from loopwright.providers.wire.form import ANYONE, SENT_TYPES, WireForm, request_messages
from loopwright.providers.wire.messages import prompt_message, with_clean_ids
from loopwright.providers.wire.target import Target
from loopwright.state.transcript import Checker


class Outgoing:
    """`request_messages`, call after call, in O(new messages) while the messages only grow.

    Messages that were given before are known by identity: one that is edited in place keeps the
    form in which it was sent first. A list that does not go on from the last one, or goes to
    another target, is read anew, and one with a fault goes through the whole repair each time.
    Holds what it was given last.
    """

    def __init__(self) -> None:
        self._begin(ANYONE)

    def messages(
        self, system_prompt: str, messages: Sequence[AnyMessage], target: Target = ANYONE
    ) -> list[BaseMessage]:
        """The same as `request_messages` of the same arguments; a fresh list."""
        known = len(self._given)
        goes_on = known <= len(messages) and all(map(is_, self._given, messages))
        if not goes_on or target != self._target:
            self._begin(target)
            known = 0
        for message in messages[known:]:
            self._take(message)
        if self._is_faulty or self._checker.open_calls:
            return request_messages(system_prompt, messages, target)
        return [*prompt_message(system_prompt), *self._form.messages()]

    def _begin(self, target: Target) -> None:
        self._target = target
        self._given: list[AnyMessage] = []
        self._form = WireForm(target)
        self._checker = Checker()
        self._is_faulty = False

    def _take(self, message: AnyMessage) -> None:
        self._given.append(message)
        if not isinstance(message, SENT_TYPES):
            return
        clean = with_clean_ids(message)
        self._is_faulty = bool(self._checker.add(clean)) or self._is_faulty
        self._form.add(clean)
