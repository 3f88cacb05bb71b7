"""Requests that grow are the same as requests made from scratch; only what is new is worked on."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage

from loopwright.providers.outgoing import Outgoing
from loopwright.providers.wire import form, request_messages
from tests.ledgers import answer, ledgers, result, unhurried, user

TURN, CUT, SWAP, ADD = "turn", "cut", "swap", "add"
CHANGES = st.lists(
    st.tuples(st.just(TURN), st.booleans())
    | st.tuples(st.sampled_from([CUT, SWAP]), st.integers(0, 20))
    | st.tuples(st.just(ADD), ledgers()),
    max_size=8,
)


def changed(messages: list[AnyMessage], at: int, kind: str, how: Any) -> list[AnyMessage]:
    """The list behind one change; a turn is valid, with its result or still without."""
    if kind == CUT:
        return messages[:how]
    if kind == SWAP:
        return [user(f"s{at}") if index == how else m for index, m in enumerate(messages)]
    if kind == ADD:
        return [*messages, *how]
    turn: list[AnyMessage] = [
        user(f"u{at}"),
        answer(f"a{at}", f"c{at}"),
        result(f"r{at}", f"c{at}"),
    ]
    return [*messages, *turn[: 3 if how else 2]]


def seen(messages: Sequence[BaseMessage]) -> list[Any]:
    """What a server sees. Call ids are numbered: a repair may have made them up."""
    numbers: dict[str, int] = {}
    shown: list[Any] = []
    for message in messages:
        made = message.tool_calls if isinstance(message, AIMessage) else []
        calls = [{**c, "id": numbers.setdefault(str(c["id"]), len(numbers))} for c in made]
        of = message.tool_call_id if isinstance(message, ToolMessage) else None
        answers = None if of is None else numbers.setdefault(of, len(numbers))
        about = (message.type, message.content, message.name, message.additional_kwargs)
        shown.append((*about, calls, answers))
    return shown


@unhurried
@given(CHANGES, st.sampled_from(["", "be brief"]))
def test_any_row_of_lists_gives_what_each_of_them_gives_alone(changes: Any, prompt: str) -> None:
    growing, messages = Outgoing(), list[AnyMessage]()
    for at, (kind, how) in enumerate(changes):
        messages = changed(messages, at, kind, how)
        before = list(messages)
        assert seen(growing.messages(prompt, messages)) == seen(request_messages(prompt, messages))
        assert all(a is b for a, b in zip(messages, before, strict=True))


def turn(number: int) -> list[AnyMessage]:
    return [answer(f"a{number}", f"c{number}"), result(f"r{number}", f"c{number}")]


@pytest.fixture
def worked_on(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The ids of the messages that were made fit to send, one by one."""
    ids: list[str | None] = []

    def noted(real: Any) -> Any:
        def work(message: AnyMessage, *rest: Any) -> Any:
            ids.append(message.id)
            return real(message, *rest)

        return work

    for name in ("user", "answer", "result"):
        monkeypatch.setattr(form, name, noted(getattr(form, name)))
    return ids


def test_only_new_messages_are_worked_on(worked_on: list[str | None]) -> None:
    growing, messages = Outgoing(), [user("u"), *turn(1)]
    growing.messages("", messages)
    growing.messages("", [*messages, *turn(2)])
    assert worked_on == ["u", "a1", "r1", "a2", "r2"]


@pytest.mark.parametrize("other", [[user("v"), *turn(1)], [user("u")], []])
def test_a_list_that_does_not_go_on_is_read_anew(other: list[AnyMessage]) -> None:
    growing = Outgoing()
    growing.messages("", [user("u"), *turn(1)])
    assert growing.messages("", other) == other


def test_a_call_that_waits_is_answered_for_this_request_only() -> None:
    growing = Outgoing()
    open_tail: list[AnyMessage] = [user("u"), answer("a", "c")]
    assert [m.type for m in growing.messages("", open_tail)] == ["human", "ai", "tool"]
    given: list[AnyMessage] = [*open_tail, result("r", "c", "ok")]
    assert [m.content for m in growing.messages("", given)] == ["hi", "", "ok"]


def test_the_list_is_the_callers_and_the_prompt_the_requests_own() -> None:
    growing, messages = Outgoing(), [user("u"), *turn(1)]
    growing.messages("one", messages).clear()
    again = growing.messages("two", messages)
    assert [m.content for m in again if isinstance(m, SystemMessage)] == ["two"]
    assert again[1:] == messages
