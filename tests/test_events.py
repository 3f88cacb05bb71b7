"""Events as JSON: every one comes back equal, and nothing else is taken for one."""

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import ValidationError

from loopwright.events import AnyEvent, Event, from_json, to_json

KINDS = get_args(AnyEvent)

# Half surrogates have no JSON form in UTF-8; texts are cleaned before they become events.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
CALLS = st.builds(
    lambda name, args, id: {"name": name, "args": args, "id": id, "type": "tool_call"},
    TEXT,
    OBJECTS,
    TEXT,
)
BROKEN = st.builds(
    lambda name, args, id: {
        "name": name,
        "args": args,
        "id": id,
        "error": "broken",
        "type": "invalid_tool_call",
    },
    TEXT,
    TEXT,
    TEXT,
)
BLOCKS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT), max_size=2)
CONTENT = TEXT | BLOCKS
USAGE = st.none() | st.builds(
    lambda i, o: {"input_tokens": i, "output_tokens": o, "total_tokens": i + o},
    st.integers(0, 9),
    st.integers(0, 9),
)
RESULTS = st.builds(
    ToolMessage,
    content=CONTENT,
    tool_call_id=TEXT,
    id=TEXT,
    name=st.none() | TEXT,
    artifact=JSON,
    status=st.sampled_from(["success", "error"]),
)
MESSAGES = st.one_of(
    st.builds(HumanMessage, content=CONTENT, id=TEXT, additional_kwargs=OBJECTS),
    st.builds(SystemMessage, content=CONTENT, id=TEXT),
    st.builds(
        AIMessage,
        content=CONTENT,
        id=TEXT,
        tool_calls=st.lists(CALLS, max_size=2),
        invalid_tool_calls=st.lists(BROKEN, max_size=2),
        usage_metadata=USAGE,
        response_metadata=OBJECTS,
    ),
    RESULTS,
)
VALUES: dict[str, Any] = {
    "run_id": TEXT,
    "sequence": st.integers(-1, 9),
    "thread": TEXT,
    "resumed_from": st.none() | TEXT,
    "messages": st.lists(MESSAGES, max_size=3),
    "message": MESSAGES,
    "tool_results": st.lists(RESULTS, max_size=2),
    "usage": st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
    "error": st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
    "interrupts": st.lists(JSON, max_size=2),
    "asks": st.lists(JSON, max_size=2),
    "arguments": JSON,
    "partial": JSON,
    "content": CONTENT,
    "details": JSON,
    "terminate": st.none() | st.booleans(),
    "is_error": st.booleans(),
    "report": st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
    "wait": st.floats(0, 9),
    "left": st.floats(0, 9),
    "tool_names": st.lists(TEXT, max_size=2),
}
NUMBERS = {"turn", "turns", "index", "delivered", "waiting", "attempt"}
NUMBERS |= {"tokens_before", "tokens_after", "count"}


def events(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Events of one kind with any values that a run could put into them."""

    def value(name: str, annotation: Any) -> Any:
        if name in VALUES:
            return VALUES[name]
        if get_args(annotation) and all(isinstance(word, str) for word in get_args(annotation)):
            return st.sampled_from(get_args(annotation))
        return st.integers(0, 9) if name in NUMBERS else TEXT

    made = {f.name: value(f.name, f.type) for f in fields(kind) if f.name != "type"}
    return st.builds(kind, **made)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_event_comes_back_equal_from_its_json(kind: type[Event], data: Any) -> None:
    event = data.draw(events(kind))
    text = json.dumps(to_json(event), allow_nan=False)
    back = from_json(json.loads(text))
    assert back == event
    assert type(back) is kind


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    names = [next(f.default for f in fields(kind) if f.name == "type") for kind in KINDS]
    assert len(set(names)) == len(KINDS) == 18


@pytest.mark.parametrize(
    "data",
    [{}, {"type": "agent_begin"}, {"type": "turn_start"}, {"type": "turn_start", "turn": "x"}],
)
def test_what_is_no_event_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        from_json(data)
