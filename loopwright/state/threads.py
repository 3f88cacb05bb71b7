"""What a list of threads shows of each: when it was written, how long it is, what it is about.

Reading a thread is the checkpointer's; printing it is an interface's.
"""

from dataclasses import dataclass

from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot

TITLE_LENGTH = 80


@dataclass(frozen=True)
class ThreadInfo:
    """One stored thread. `updated` is an ISO 8601 time in UTC, `title` the first user message."""

    id: str
    updated: str
    messages: int
    title: str


def summary(thread: str, state: StateSnapshot) -> ThreadInfo:
    """The line of a thread in a list, from its latest state."""
    messages = state.values.get("messages", [])
    first = next((m for m in messages if isinstance(m, HumanMessage)), None)
    text = "" if first is None else " ".join(str(first.text).split())
    title = text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"
    return ThreadInfo(thread, state.created_at or "", len(messages), title)
