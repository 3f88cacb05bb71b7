"""The line that stands for a thread in a list."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.types import StateSnapshot

from loopwright.state.threads import TITLE_LENGTH, ThreadInfo, summary


def snapshot(messages: list[AnyMessage] | None, created: str | None = "2026-01-01") -> Any:
    values = {} if messages is None else {"messages": messages}
    return StateSnapshot(values, (), {}, None, created, None, (), ())


def test_a_thread_is_titled_by_its_first_user_message() -> None:
    messages: list[AnyMessage] = [AIMessage("hello"), HumanMessage("one\n  two"), HumanMessage("x")]
    assert summary("t", snapshot(messages)) == ThreadInfo("t", "2026-01-01", 3, "one two")


def test_a_long_title_is_cut_with_an_ellipsis() -> None:
    title = summary("t", snapshot([HumanMessage("x" * 200)])).title
    assert (len(title), title[-2:]) == (TITLE_LENGTH, "x…")
    assert summary("t", snapshot([HumanMessage("x" * TITLE_LENGTH)])).title == "x" * TITLE_LENGTH


def test_a_title_is_the_text_of_a_message_with_images() -> None:
    blocks: Any = [{"type": "image", "url": "https://h/x.png"}, {"type": "text", "text": "look"}]
    assert summary("t", snapshot([HumanMessage(blocks)])).title == "look"


def test_a_thread_without_messages_has_no_title() -> None:
    assert summary("t", snapshot(None, None)) == ThreadInfo("t", "", 0, "")
