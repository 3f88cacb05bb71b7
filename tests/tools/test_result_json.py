"""A result that the journal holds is the one that the tool gave."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage

from loopwright.text import clean_text
from loopwright.tools.contract import ToolResult
from loopwright.tools.result_json import from_json, to_json

TEXT = st.text().map(clean_text)
DETAILS = st.none() | st.dictionaries(TEXT, st.integers(-(2**63) + 1, 2**63 - 1) | TEXT, max_size=2)
BLOCKS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), min_size=1)
MESSAGES = st.lists(st.builds(HumanMessage, TEXT, id=TEXT), max_size=2)
RESULTS = st.builds(
    ToolResult,
    content=TEXT | BLOCKS,
    details=DETAILS,
    is_error=st.booleans(),
    terminate=st.sampled_from([True, False, None]),
    messages=MESSAGES.map(tuple),
    usage=DETAILS,
    added_tools=st.lists(TEXT).map(tuple),
)


@given(RESULTS)
def test_a_result_comes_back_as_it_was(result: ToolResult) -> None:
    assert from_json(json.loads(json.dumps(to_json(result)))) == result


def test_what_has_no_json_form_leaves_a_note_and_harms_nothing_else() -> None:
    odd: Any = ToolResult(content=[{"type": "text", "text": object()}], details={"a": b"\xff"})
    back = from_json(json.loads(json.dumps(to_json(odd))))
    assert "left out" in str(back.content) and "left out" in back.details["note"]


def test_messages_with_more_than_text_come_back_too() -> None:
    image = {"type": "image", "base64": "AA==", "mime_type": "image/png"}
    message: AnyMessage = HumanMessage([image], id="m", additional_kwargs={"a": 1})
    (back,) = from_json(to_json(ToolResult(messages=(message,)))).messages
    assert back == message


def test_a_result_of_another_version_is_read_as_far_as_it_is_known() -> None:
    assert from_json({"content": "a", "mood": "good"}) == ToolResult(content="a")
