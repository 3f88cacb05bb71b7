"""Notes of the loop to its model: rows of the ledger that stand where the model was told (K17).

They are system messages, so that no user's words are mistaken for them; `shown` is how a model
sees them, because servers take system messages at the beginning only.
"""

from collections.abc import Sequence
from functools import lru_cache

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from loopwright.state.messages import new_id

_RULE = "loopwright_rule"


def note(text: str, rule: str) -> SystemMessage:
    """A note that a rule of this name makes."""
    return SystemMessage(text, id=new_id(), additional_kwargs={_RULE: rule})


def rule_of(message: AnyMessage) -> str | None:
    """The rule that has made a note; None for every other message."""
    return message.additional_kwargs.get(_RULE) if isinstance(message, SystemMessage) else None


def shown(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages with the notes as a model is shown them."""
    return [_shown(message) if message.type == "system" else message for message in messages]


def _shown(row: AnyMessage) -> AnyMessage:
    return _as_user(row.id, row.text) if rule_of(row) else row


@lru_cache(maxsize=256)
def _as_user(id: str | None, text: str) -> HumanMessage:
    """The same object for the same note: a request that goes on is told by identity."""
    return HumanMessage(f"[System note] {text}", id=id)
