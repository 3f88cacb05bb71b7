"""Payloads of chat completions: all that a server sent is kept, and no split or cut changes it."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from loopwright.providers.assembly import Answer
from loopwright.providers.completion_chunks import CompletionReader, error_in
from loopwright.providers.sse import EventReader


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"function": {"arguments": arguments}, **fields}]})


def assembled(payloads: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> Answer:
    reader, answer = CompletionReader(), Answer(provider="p", model="m")
    for payload in payloads:
        answer.add(reader.read(payload))
    return answer


def said(*payloads: dict[str, Any]) -> AIMessage:
    return assembled([*payloads, chunk({}, "stop")]).message()


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_thinking_is_kept_under_any_of_its_names(name: str) -> None:
    blocks = said(chunk({name: "hm "}), chunk({name: "so"}), chunk({"content": "Yes."})).content
    assert blocks == [
        {"type": "reasoning", "reasoning": "hm so"},
        {"type": "text", "text": "Yes."},
    ]


def test_thinking_in_detail_counts_once_and_keeps_its_signature() -> None:
    detail = {"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}
    content = said(chunk({"reasoning": "hm", "reasoning_details": [detail]})).content
    assert content == [{"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s"}}]


def test_a_refusal_is_a_text() -> None:
    assert said(chunk({"refusal": "I can"}), chunk({"refusal": "not."})).text == "I cannot."


@pytest.mark.parametrize(
    "payload",
    [
        call("{}", id="c1"),
        call({}, id="c1", index="0"),
        chunk({"tool_calls": [{"function": {"id": "c1", "arguments": "{}"}, "index": None}]}),
        chunk({"tool_calls": {"id": "c1", "name": "f", "arguments": "{}"}}),
    ],
)
def test_a_call_is_found_in_many_forms(payload: dict[str, Any]) -> None:
    calls = payload["choices"][0]["delta"]["tool_calls"]
    (row,) = calls if isinstance(calls, list) else [calls]
    row.get("function", row)["name"] = "f"
    (found,) = said(payload).tool_calls
    assert (found["id"], found["name"], found["args"]) == ("c1", "f", {})


def test_the_call_of_old_servers_is_one() -> None:
    first = chunk({"function_call": {"name": "f", "arguments": '{"a"'}})
    (found,) = said(first, chunk({"function_call": {"arguments": ": 1}"}})).tool_calls
    assert (found["name"], found["args"]) == ("f", {"a": 1})


def test_only_the_first_choice_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    assert said(chunk({"content": "yes"}), other).text == "yes"


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        chunk({"role": "tool", "content": None, "tool_calls": [None, 1, {"function": None}]}),
        chunk({"content": 7, "reasoning": [], "tool_calls": "x", "reasoning_details": [1]}),
        {"usage": {"prompt_tokens": "x", "completion_tokens": -1, "total_tokens": None}},
    ],
)
def test_what_has_no_known_form_says_nothing(odd: dict[str, Any]) -> None:
    assert said(chunk({"content": "yes"}), odd).content == "yes"


@pytest.mark.parametrize(
    ("reports", "counts"),
    [
        ([{"prompt_tokens": "10", "completion_tokens": 3.0}], (10, 3, 13)),
        ([{"prompt_tokens": 10}, {"completion_tokens": 1}, {"completion_tokens": 3}], (10, 3, 13)),
        ([{"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 5}], (10, 3, 13)),
        ([{"total_tokens": 12}], (0, 0, 12)),
        ([{"prompt_tokens": 9, "completion_tokens": 2}, {"prompt_tokens": None}, {}], (9, 2, 11)),
    ],
)
def test_counts_are_the_last_known_ones(
    reports: list[dict[str, Any]], counts: tuple[int, int, int]
) -> None:
    usage = said(*(chunk({}, usage=report) for report in reports)).usage_metadata
    assert usage is not None
    found = (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"])
    assert found == counts


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"error": {"message": "no"}}, ""),
        ({"error": "no"}, ""),
        ({"message": "no"}, "error"),
        ({"object": "error", "message": "no", "code": 400}, ""),
        ({"type": "error", "message": "no"}, ""),
        ("no", "error"),
    ],
)
def test_an_error_is_known_in_many_forms(payload: Any, event: str) -> None:
    assert (error_in(payload, event) or {})["message"] == "no"


# ---- whole streams

ARGUMENTS = ['{"path": "a", "content": "naïve \\" 中文 🚀"}', '{"n": [1, {"b": 2}]}']
PAYLOADS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Let me "}),
    chunk({"content": "look 🚀."}),
    call(ARGUMENTS[0][:9], index=0, id="c1"),
    call(ARGUMENTS[0][9:], index=0),
    call(ARGUMENTS[1], index=1, id="c2"),
    chunk({}, "tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
]
for number in (3, 5):
    PAYLOADS[number]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "f"
LINES = [f"data: {json.dumps(payload, ensure_ascii=False)}\n\n" for payload in PAYLOADS]
BODY = "".join([*LINES, "data: [DONE]\n\n"]).encode()


def from_bytes(parts: list[bytes]) -> Answer:
    """The answer of a body; what cannot be read raises as it does for a client."""
    reader = EventReader()
    events = [event for part in parts for event in reader.feed(part)] + list(reader.close())
    return assembled([json.loads(event.data) for event in events if event.data != "[DONE]"])


def shown(message: AIMessage) -> Any:
    return message.content, message.tool_calls, message.invalid_tool_calls, message.usage_metadata


WHOLE = from_bytes([BODY]).message()


@given(st.lists(st.integers(0, len(BODY))))
def test_any_splitting_of_the_bytes_gives_the_same_message(cuts: list[int]) -> None:
    places = sorted({0, len(BODY), *cuts})
    assert shown(from_bytes([BODY[a:b] for a, b in pairwise(places)]).message()) == shown(WHOLE)


@given(st.lists(st.integers(1, 6), max_size=30))
def test_any_splitting_of_the_arguments_gives_the_same_call(sizes: list[int]) -> None:
    text, at, pieces = ARGUMENTS[0], 0, list[str]()
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    head = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f"}}]})
    message = said(head, *(call(piece, index=0) for piece in [*pieces, text[at:]]))
    assert [c["args"] for c in message.tool_calls] == [json.loads(text)]


def test_a_cut_at_any_byte_never_gives_a_call_that_may_run_but_is_not_whole() -> None:
    wanted = [c["args"] for c in WHOLE.tool_calls]
    for at in range(len(BODY)):
        try:
            answer = from_bytes([BODY[:at]])
        except ValueError:  # a cut line: the client raises it, and the answer fails
            continue
        runnable = [c["args"] for c in answer.message().tool_calls]
        assert not answer.is_complete or runnable == wanted
        assert runnable == wanted[: len(runnable)]
