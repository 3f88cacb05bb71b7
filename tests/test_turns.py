"""The last turn of a ledger, as nodes and hooks are shown it."""

import pytest
from langchain_core.messages import AnyMessage

from loopwright.errors import StateError
from loopwright.turns import last_turn, turn_context
from tests.ledgers import answer, result, user
from tests.support.states import record, scene, state

TURN: list[AnyMessage] = [answer("a1", "c1", "c2"), result("r1", "c1"), result("r2", "c2")]


def test_a_turn_is_the_last_answer_and_the_results_behind_it() -> None:
    message, results = last_turn([user("u"), answer("a0"), *TURN, user("from a tool")])
    assert message.id == "a1"
    assert [r.id for r in results] == ["r1", "r2"]
    assert last_turn([*TURN, answer("a2")])[1] == []


def test_a_ledger_without_an_answer_has_no_turn() -> None:
    with pytest.raises(StateError, match="no assistant message"):
        last_turn([user("u")])


def test_a_hook_sees_the_turn_in_lists_of_its_own() -> None:
    messages = [user("old"), answer("older"), user("new"), *TURN]
    made = scene(messages=messages)
    before = state(messages, run=record(first=2), system_prompt="be brief")
    seen = turn_context(before, made.run)
    assert (seen.message.id, seen.system_prompt) == ("a1", "be brief")
    assert [m.id for m in seen.new_messages] == ["new", "a1", "r1", "r2"]
    assert [m.id for m in seen.messages] == [m.id for m in messages]
    for given in (seen.messages, seen.new_messages, seen.tool_results):
        given.clear()
    assert len(before["messages"]) == len(messages)
