"""Fresh ids for calls: only where one is needed, the same every time, wherever the id stands."""

from typing import Any

from langchain_core.messages import AIMessage

from loopwright.state.call_ids import with_call_ids, with_own_call_ids
from loopwright.state.messages import calls
from tests.ledgers import answer, user


def ids(message: Any) -> list[str]:
    return [call.id for call in calls(message)]


def test_ids_that_are_fine_are_kept_and_noted_as_used() -> None:
    used: set[str] = {"a"}
    message = answer("m", "b", "c")
    assert with_own_call_ids(message, used) is message
    assert used == {"a", "b", "c"}


def test_a_message_without_calls_is_returned_as_it_is() -> None:
    message = user("u")
    assert with_own_call_ids(message, set()) is message


def test_blank_and_used_ids_are_replaced() -> None:
    used = {"a"}
    first, second, third, fourth = ids(with_own_call_ids(answer("m", "a", "b", "b", " "), used))
    assert second == "b"
    assert len({"a", first, second, third, fourth}) == 5
    assert used == {"a", first, second, third, fourth}
    assert all(id.strip() for id in (first, third, fourth))


def test_the_same_message_gets_the_same_ids_and_another_one_others() -> None:
    one = with_own_call_ids(answer("m", "", ""), set())
    assert ids(one) == ids(with_own_call_ids(answer("m", "", ""), set()))
    assert not set(ids(one)) & set(ids(with_own_call_ids(answer("n", "", ""), set())))


def test_a_fresh_id_is_neither_used_nor_reserved() -> None:
    (usual,) = ids(with_own_call_ids(answer("m", ""), set()))
    assert ids(with_own_call_ids(answer("m", ""), {usual})) != [usual]
    assert ids(with_own_call_ids(answer("m", ""), set(), {usual})) != [usual]


def test_an_id_is_short_and_plain_enough_for_every_server() -> None:
    for used in (set(), {ids(with_own_call_ids(answer("m", ""), set()))[0]}):
        (fresh,) = ids(with_own_call_ids(answer("m", ""), used))
        assert fresh.isascii()
        assert fresh.replace("_", "").isalnum()
        assert len(fresh) <= 40


def test_blocks_that_repeat_a_call_are_renamed_along_and_others_are_not() -> None:
    content: list[Any] = [
        "look",
        {"type": "text", "text": "k", "id": "k"},
        {"type": "tool_use", "id": "k", "name": "t", "input": {}},
        {"type": "tool_use", "id": "other", "name": "t", "input": {}},
        {"type": "function_call", "id": "k", "call_id": "k", "name": "t", "arguments": "{}"},
    ]
    twice: Any = [{"name": "t", "args": {}, "id": "k"}] * 2
    message = AIMessage(content, id="m", tool_calls=twice)
    renamed = with_call_ids(message, ["x", "y"])
    blocks: Any = renamed.content
    assert ids(renamed) == ["x", "y"]
    assert [b.get("id") for b in blocks[1:]] == ["k", "x", "other", "k"]
    assert blocks[4]["call_id"] == "y"
    assert ids(message) == ["k", "k"]
    assert message.content == content
