"""What of a ledger may be sent, whatever is in it, and that sending never changes it."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from loopwright.providers.wire import NO_OUTPUT, api_messages, openai_form, request_messages
from loopwright.providers.wire.images import OMITTED
from loopwright.state.messages import failure
from loopwright.state.repair import INTERRUPTED
from loopwright.state.transcript import faults
from tests.ledgers import ARGUMENTS, ODD_TEXTS, answer, ledgers, result, shape, unhurried, user


def sent(*messages: AnyMessage) -> list[BaseMessage]:
    return request_messages("", messages)


def content(message: AnyMessage) -> Any:
    """What is sent as the content of one message."""
    return sent(message)[0].content


def test_the_system_prompt_stands_first_and_stored_system_rows_are_dropped() -> None:
    messages = request_messages("new", [SystemMessage("old", id="s"), user("u")])
    assert [(m.type, m.content) for m in messages] == [("system", "new"), ("human", "hi")]


def test_without_a_system_prompt_there_is_no_system_message() -> None:
    assert [m.type for m in sent(user("u"))] == ["human"]


def test_other_roles_are_not_sent() -> None:
    assert sent(ChatMessage(content="note", role="notification", id="n")) == []


def test_clean_messages_are_sent_as_the_same_objects() -> None:
    messages: list[AnyMessage] = [
        user("u"),
        answer("a", "c", text="look"),
        result("r", "c"),
        answer("b", text="ok"),
    ]
    assert all(a is b for a, b in zip(sent(*messages), messages, strict=True))


def test_nothing_but_what_servers_know_is_sent() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    fields: Any = {"additional_kwargs": {"k": "secret"}, "response_metadata": {"k": "secret"}}
    message = AIMessage("hi", id="a", usage_metadata=usage, **fields, internal="secret")
    tool = ToolMessage("ok", id="r", tool_call_id="c", artifact="secret", **fields)
    human = HumanMessage("hi", id="u", **fields)
    messages = sent(human, message, answer("b", "c"), tool)
    assert "secret" not in str([m.model_dump() for m in messages])
    assert [m.usage_metadata for m in messages if isinstance(m, AIMessage)] == [None, None]


def test_usage_and_the_extras_of_a_call_are_not_sent_either() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    (spoken,) = sent(AIMessage("hi", id="a", usage_metadata=usage))
    assert isinstance(spoken, AIMessage)
    assert spoken.usage_metadata is None
    signed: Any = answer("a", "c")
    signed.tool_calls[0]["extras"] = {"thought_signature": "secret"}
    assert "secret" not in str(sent(signed)[0].model_dump())


def test_names_are_sent_and_kept_apart_from_other_fields() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("hi", id="u", name="bob"),
        answer("a", "c"),
        result("r", "c"),
    ]
    assert [row.get("name") for row in openai_form(messages)] == ["bob", None, "t"]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_answer_without_text_and_calls_is_left_out(text: str) -> None:
    failed = failure("no connection", kind="network", reason="error", model="m")
    assert shape(sent(user("u"), answer("a", text=text), failed)) == ["u"]  # type: ignore[arg-type]


def test_an_answer_that_was_cut_off_keeps_its_text() -> None:
    aborted = AIMessage("half", id="a", response_metadata={"stop_reason": "aborted"})
    assert content(aborted) == "half"


def test_an_open_call_is_sent_with_the_marker_and_an_orphan_is_not_sent() -> None:
    messages: list[AnyMessage] = [answer("a", "c"), user("u"), result("r", "zz")]
    rows = api_messages(messages, "")
    assert [(row["role"], row["content"]) for row in rows] == [
        ("assistant", None),
        ("tool", INTERRUPTED),
        ("user", "hi"),
    ]


def test_calls_that_share_an_id_are_sent_with_ids_of_their_own_and_the_same_every_time() -> None:
    messages: list[AnyMessage] = [
        answer("a", "k", "k"),
        result("r", "k"),
        result("s", "k"),
        answer("b", "k"),
    ]
    rows = api_messages(messages, "")
    ids = [call["id"] for row in rows for call in row.get("tool_calls", [])]
    assert len(set(ids)) == 3
    assert [row["tool_call_id"] for row in rows if row["role"] == "tool"] == ids
    assert api_messages(messages, "") == rows


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [('{"path": "a', {}), ("[1]", {}), ("", {}), (None, {}), ('{"n": NaN}', {"n": None})],
)
def test_a_broken_call_is_sent_with_an_object_for_its_arguments(raw: Any, arguments: Any) -> None:
    broken: Any = {"name": "t", "args": raw, "id": "c", "error": "cut", "type": "invalid_tool_call"}
    message = AIMessage("", id="a", invalid_tool_calls=[broken])
    (row, answered) = api_messages([message, result("r", "c", "cut")], "")
    (call,) = row["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("c", "t")
    assert json.loads(call["function"]["arguments"]) == arguments
    assert answered["content"] == "cut"


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("ok \ud83d end", "ok \ufffd end"),
        ("a\udc00b", "a\ufffdb"),
        ("f\udcff.txt", "f\ufffd.txt"),
        ("\ud83d\udd25", "\U0001f525"),
        ("a\0b", "ab"),
        ("hé 火", "hé 火"),
    ],
)
def test_text_is_sent_as_valid_unicode(text: str, valid: str) -> None:
    assert content(user("u", text)) == valid
    assert content(answer("a", text=text)) == valid
    blocks: Any = [{"type": "text", "text": text}]
    assert content(HumanMessage(blocks, id="u")) == valid
    messages = request_messages(text, [answer("a", "c"), result("r", "c", text)])
    assert [m.content for m in messages] == [valid, "", valid]


def test_arguments_are_sent_as_valid_json() -> None:
    made: Any = {"name": "t", "args": {"k\ud83d": ["a\0b", float("inf")]}, "id": "c"}
    (call,) = api_messages([AIMessage("", id="a", tool_calls=[made])], "")[0]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"k\ufffd": ["ab", None]}


def test_ids_that_become_one_when_cleaned_stay_two() -> None:
    messages: list[AnyMessage] = [answer("a", "\ud800", "\ud801"), result("r", "\ud801", "two")]
    rows = api_messages(messages, "")
    first, second = (call["id"] for call in rows[0]["tool_calls"])
    assert first != second
    assert first.encode() and second.encode()
    assert [row["tool_call_id"] for row in rows[1:]] == [first, second]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "secret", "signature": "secret"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "reasoning", "id": "secret", "summary": []},
        {"type": "tool_use", "id": "secret", "name": "t", "input": {}},
    ],
)
def test_thinking_and_repeated_calls_are_not_sent_as_content(block: dict[str, Any]) -> None:
    text = {"type": "text", "text": "answer", "signature": "secret"}
    message = AIMessage([block, text], id="a")
    assert content(message) == "answer"
    assert sent(AIMessage([block], id="a")) == []


def test_the_texts_of_an_answer_are_joined_and_what_it_shows_is_named() -> None:
    hi, there = {"type": "text", "text": "Hi"}, {"type": "text", "text": " there"}
    image = {"type": "image", "url": "https://example.com/a.png"}
    assert content(AIMessage([hi, "\n", there], id="a")) == "Hi\n there"
    assert content(AIMessage([hi, image, " "], id="a")) == f"Hi{OMITTED} "


def test_blank_text_blocks_are_not_sent_and_other_blocks_of_a_user_are_kept_whole() -> None:
    image = {"type": "image", "base64": "AA==", "mime_type": "image/png", "extras": {"k": 1}}
    cached = {"type": "text", "text": "see", "cache_control": {"type": "ephemeral"}}
    blank = {"type": "text", "text": " "}
    assert content(HumanMessage([blank, cached, image], id="u")) == [cached, image]


@pytest.mark.parametrize("empty", ["", " ", [], [{"type": "text", "text": ""}]])
def test_an_empty_result_is_sent_as_such(empty: Any) -> None:
    tool = ToolMessage(empty, id="r", tool_call_id="c")
    assert sent(answer("a", "c"), tool)[1].content == NO_OUTPUT


def test_the_openai_form_has_null_for_a_missing_text_and_no_empty_list_of_calls() -> None:
    rows = openai_form([answer("a", "c"), answer("b", text="hi")])
    arguments = '{"of":"a"}'
    function = {"name": "t", "arguments": arguments}
    call = {"id": "c", "type": "function", "function": function}
    assert rows == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "hi"},
    ]


def test_the_openai_form_of_an_image_is_an_image_url() -> None:
    image = {"type": "image", "base64": "AA==", "mime_type": "image/png"}
    (row,) = openai_form([HumanMessage(["see", image], id="u")])
    url = {"url": "data:image/png;base64,AA=="}
    assert row["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": url},
    ]


@unhurried
@given(ledgers(ODD_TEXTS, ARGUMENTS))
def test_whatever_is_stored_what_is_sent_is_valid(ledger: list[AnyMessage]) -> None:
    messages: Any = request_messages("", ledger)
    assert faults(messages) == []
    body = json.dumps(openai_form(messages), ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in body.replace("\\\\", "")
    assert body.encode("utf-8")
    assert "secret" not in str([message.model_dump() for message in messages])
    assert all(m.content or m.tool_calls for m in messages if isinstance(m, AIMessage))


@unhurried
@given(ledgers(ODD_TEXTS, ARGUMENTS))
def test_sending_does_not_change_the_ledger(ledger: list[AnyMessage]) -> None:
    before, contents = deepcopy(ledger), [repr(message) for message in ledger]
    openai_form(request_messages("", ledger))
    assert len(ledger) == len(before)
    assert [repr(message) for message in ledger] == contents


@unhurried
@given(ledgers(ODD_TEXTS, ARGUMENTS))
def test_what_was_made_fit_for_sending_is_sent_as_it_is(ledger: list[AnyMessage]) -> None:
    messages: Any = request_messages("", ledger)
    assert all(a is b for a, b in zip(sent(*messages), messages, strict=True))


@unhurried
@given(ledgers())
def test_a_later_request_begins_with_the_earlier_one(ledger: list[AnyMessage]) -> None:
    valid: Any = sent(*ledger)
    longer: Any = [*valid, user("new"), answer("newer", "new-call")]
    assert api_messages(longer, "s")[: len(valid) + 1] == api_messages(valid, "s")
