"""What becomes a message of a ledger, and what is read from one."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Overwrite

from loopwright.errors import InputError
from loopwright.state.messages import (
    Call,
    as_messages,
    calls,
    error_of,
    failure,
    identified,
    open_calls,
    stop_reason,
    tool_error,
)
from tests.ledgers import answer, result, user
from tests.support.providers import said


def test_text_becomes_a_user_message_with_an_id() -> None:
    (message,) = as_messages("hi")
    assert isinstance(message, HumanMessage)
    assert (message.content, bool(message.id)) == ("hi", True)


def test_messages_are_taken_in_every_form_langchain_knows() -> None:
    given = [
        "one",
        {"role": "user", "content": "two"},
        ("assistant", "three"),
        {"type": "system", "content": "four"},
        HumanMessage("five", id="own"),
        AIMessageChunk(content="six"),
    ]
    taken = as_messages(given)
    assert [(m.type, m.text) for m in taken] == [
        ("human", "one"),
        ("human", "two"),
        ("ai", "three"),
        ("system", "four"),
        ("human", "five"),
        ("ai", "six"),
    ]
    assert taken[4].id == "own"
    assert len({m.id for m in taken}) == 6


def test_a_chunk_becomes_the_whole_message_that_can_be_stored() -> None:
    (message,) = as_messages(AIMessageChunk(content="hi"))
    assert type(message) is AIMessage


def test_one_message_or_one_dict_is_a_prompt_too() -> None:
    assert as_messages(SystemMessage("a"))[0].type == "system"
    assert as_messages({"role": "user", "content": "b"})[0].text == "b"
    assert as_messages([]) == []


def test_images_join_the_text_in_one_message() -> None:
    (message,) = as_messages("look", [b"\x89PNG\r\n\x1a\n...", "https://host/x.png"])
    assert [block["type"] for block in message.content_blocks] == ["text", "image", "image"]


def test_images_without_a_text_prompt_are_refused() -> None:
    with pytest.raises(InputError, match="images go with a text prompt"):
        as_messages([HumanMessage("hi")], ["https://host/x.png"])


@pytest.mark.parametrize(
    "prompt",
    [
        [RemoveMessage("x")],
        [{"type": "remove", "id": "x", "content": ""}],
        {"type": "__overwrite__", "value": []},
        {"__overwrite__": []},
        [{"__overwrite__": []}],
        [3],
        [None],
        [{}],
        [{"role": "nobody", "content": "x"}],
        [{"role": "user"}],
        b"bytes",
        [Overwrite([])],
    ],
)
def test_what_is_no_message_to_add_is_refused(prompt: Any) -> None:
    with pytest.raises(InputError):
        as_messages(prompt)


def test_calls_are_the_runnable_ones_and_then_the_broken_ones() -> None:
    message = said("", ("c2", "t", '{"a": '), ("c1", "s", {"a": 1}))
    assert calls(message) == [
        Call("c1", "s", {"a": 1}),
        Call("c2", "t", '{"a": ', "its arguments are broken"),
    ]
    assert calls(user("u")) == []


def test_the_stop_reason_is_the_stored_one_or_follows_from_the_calls() -> None:
    assert stop_reason(said("", ("c", "t", {}), stop="length")) == "length"
    assert stop_reason(said("", ("c", "t", {}))) == "tool_use"
    assert stop_reason(said("done")) == "stop"


def test_a_failure_says_what_failed_and_why_the_run_stopped() -> None:
    message = failure("no route", kind="network", reason="error", model="m")
    assert error_of(message) == {"kind": "network", "message": "no route"}
    assert stop_reason(message) == "error"
    assert (message.content, bool(message.id)) == ("", True)
    assert error_of(said("fine")) is None


def test_an_error_result_answers_its_call() -> None:
    made = tool_error(Call("c1", "t", {}), "no")
    assert (made.tool_call_id, made.name, made.status, made.content) == ("c1", "t", "error", "no")


class CountedReads(Sequence[AnyMessage]):
    """A ledger that counts how many of its messages were looked at."""

    def __init__(self, messages: Sequence[AnyMessage]) -> None:
        self.messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return self.messages[index]

    def __reversed__(self) -> Iterator[AnyMessage]:
        return (self[index] for index in range(len(self) - 1, -1, -1))


@pytest.mark.parametrize("older", [10, 1000])
def test_open_calls_look_at_the_last_turn_only(older: int) -> None:
    before: list[AnyMessage] = [user(f"u{number}") for number in range(older)]
    ledger = CountedReads([*before, answer("a", "c1", "c2", "c3"), result("r", "c2")])
    assert [call.id for call in open_calls(ledger)] == ["c1", "c3"]
    assert ledger.reads == 2


def test_calls_of_an_earlier_turn_are_not_open() -> None:
    assert open_calls([answer("a", "c1"), user("u"), answer("b")]) == []
    assert open_calls([user("u")]) == []


def test_messages_get_ids_that_are_not_taken() -> None:
    taken = {"a"}
    fresh = identified([user("a"), user("b"), user("b"), HumanMessage("no id")], taken)
    assert fresh[1].id == "b"
    assert len({m.id for m in fresh}) == 4
    assert taken == {"a", *(str(m.id) for m in fresh)}


def test_a_result_of_another_type_is_no_call() -> None:
    assert calls(ToolMessage("x", tool_call_id="c")) == []
