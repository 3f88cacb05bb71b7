"""What of the ledger a model is shown: how large it is, and where the older part may be cut off.

Making the summary is the `compact` node's; turning messages into a wire form is the providers'.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from loopwright.state.messages import new_id
from loopwright.state.schema import View

CHARACTERS_PER_TOKEN = 4
SUMMARY_HEADING = "Summary of the conversation so far (the older messages are no longer shown):"


def whole_ledger() -> View:
    """The view that shows everything."""
    return View(head=[], start=0, measured_from=0)


def shown(view: View, ledger: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages that a request is made of; a fresh list."""
    return [*view["head"], *ledger[view["start"] :]]


def moved(view: View, old: Sequence[AnyMessage], new: Sequence[AnyMessage]) -> View:
    """The same view of a ledger that a repair rewrote: it begins at the same message."""
    if view["start"] >= len(old):
        return View(head=view["head"], start=len(new), measured_from=len(new))
    first = old[view["start"]].id
    start = next((i for i, message in enumerate(new) if message.id == first), None)
    if start is None:
        return whole_ledger()
    return View(head=view["head"], start=start, measured_from=len(new))


def measure(view: View, ledger: Sequence[AnyMessage]) -> int:
    """Estimated tokens of what a request would send."""
    trusted = len(view["head"]) + view["measured_from"] - view["start"]
    return estimated_tokens(shown(view, ledger), max(trusted, 0))


def estimated_tokens(messages: Sequence[BaseMessage], trusted_from: int = 0) -> int:
    """Tokens of a context: the last answer's reported usage plus an estimate of what came later.

    Usage reported before position `trusted_from` is ignored; without any, everything is estimated.
    """
    later = 0
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, AIMessage) and position >= trusted_from and message.usage_metadata:
            reported: int = message.usage_metadata["total_tokens"]
            if reported:
                return reported + later
        later += len(str(message.content)) // CHARACTERS_PER_TOKEN + 4
    return later


def exceeds_window(tokens: int, window: int, threshold: float) -> bool:
    """Whether a context is above its share of the window: strictly (S1-07)."""
    return tokens > threshold * window


def legal_cut(messages: Sequence[AnyMessage], keep: int) -> int:
    """Where the verbatim tail begins: at least `keep` messages, 0 if there is nothing to cut off.

    The tail never begins with a tool result, so no result loses its call (S1-08).
    """
    cut = max(0, len(messages) - keep)
    while cut > 0 and isinstance(messages[cut], ToolMessage):
        cut -= 1
    return cut


def summary_message(summary: str) -> HumanMessage:
    """The message that stands for the part that was cut off."""
    return HumanMessage(f"{SUMMARY_HEADING}\n\n{summary}", id=new_id())
