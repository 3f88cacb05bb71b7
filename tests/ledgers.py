"""Ledgers for tests: short ways to write messages, and random lists of them with every fault.

What is valid, and what becomes of them, is said by the tests.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolMessage,
)

from loopwright.state.repair import INTERRUPTED

unhurried = settings(deadline=None)
"""For random tests: how long one example takes on a busy machine says nothing."""


def user(id: str, text: str = "hi") -> HumanMessage:
    return HumanMessage(text, id=id)


def answer(id: str, *call_ids: str, text: str = "", name: str = "t") -> AIMessage:
    """An assistant message with these calls."""
    made = [{"name": name, "args": {"of": id}, "id": call} for call in call_ids]
    return AIMessage(text, id=id, tool_calls=made)


def result(id: str, call_id: str, text: str = "ok", name: str | None = "t") -> ToolMessage:
    return ToolMessage(text, id=id, tool_call_id=call_id, name=name)


def shape(messages: list[AnyMessage]) -> list[str]:
    """A ledger as words: ids of messages, and of the calls that results answer."""
    return [
        f"{m.id}:{m.tool_call_id}" if isinstance(m, ToolMessage) else str(m.id) for m in messages
    ]


# Few ids, so that they are blank, shared and unknown all the time.
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "", " "])
MESSAGE_IDS = st.sampled_from(["m1", "m2", "m3", "m4", "tool-result-c1", None])
NAMES = st.sampled_from(["t", "s", ""])
TEXTS = st.sampled_from(["ok", "boom", "", " \n", INTERRUPTED])
ODD_TEXTS = (
    TEXTS
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["\ud83d", "a\0b", "\udc00\ud83d"])
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD_TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ODD_TEXTS, inner, max_size=2),
    max_leaves=4,
)
PLAIN = st.just({"a": 1})
ARGUMENTS = st.dictionaries(ODD_TEXTS, JSON, max_size=2)
EXTRAS = st.sampled_from([{}, {"reasoning_content": "secret"}])


@st.composite
def answers(draw: Any, texts: Any = TEXTS, arguments: Any = PLAIN) -> AIMessage:
    """An assistant message: text or blocks, whole and broken calls, blocks that repeat calls."""
    whole = [
        {"name": draw(NAMES), "args": draw(arguments), "id": id}
        for id in draw(st.lists(CALL_IDS, max_size=3))
    ]
    broken = [
        InvalidToolCall(type="invalid_tool_call", name=draw(NAMES), args='{"a', id=id, error="cut")
        for id in draw(st.lists(CALL_IDS, max_size=1))
    ]
    content: Any = draw(texts)
    if draw(st.booleans()):
        content = [
            {"type": "thinking", "thinking": "secret", "signature": "secret"},
            {"type": "text", "text": content},
            *({"type": "tool_use", "id": c["id"], "name": c["name"], "input": {}} for c in whole),
        ]
    return AIMessage(
        content=content,
        id=draw(MESSAGE_IDS),
        tool_calls=whole,
        invalid_tool_calls=broken,
        additional_kwargs=draw(EXTRAS),
        response_metadata=draw(st.sampled_from([{}, {"stop_reason": "secret"}])),
    )


def results(texts: Any = TEXTS) -> Any:
    return st.builds(
        ToolMessage,
        content=texts,
        id=MESSAGE_IDS,
        tool_call_id=CALL_IDS,
        name=NAMES | st.none(),
        status=st.sampled_from(["success", "error"]),
        artifact=st.sampled_from([None, "secret"]),
    )


def ledgers(texts: Any = TEXTS, arguments: Any = PLAIN) -> Any:
    """Random lists of messages, most of them broken in several ways."""
    others = st.builds(HumanMessage, content=texts, id=MESSAGE_IDS, additional_kwargs=EXTRAS)
    system = st.builds(SystemMessage, content=texts, id=MESSAGE_IDS)
    # Weighted towards answers and results: they are what can go wrong.
    kinds = [answers(texts, arguments), results(texts), results(texts), others, system]
    return st.lists(st.one_of(kinds), max_size=12)
