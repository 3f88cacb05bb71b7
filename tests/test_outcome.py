"""What a run came to: a caller's result, its stored form, and the totals in both."""

import json

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.events import AgentEnd
from loopwright.outcome import final_text, outcome_of, result_of
from tests.ledgers import answer, result, user

MESSAGES: list[AnyMessage] = [user("u"), answer("a", "c1", text="I look."), result("r", "c1")]
END = AgentEnd(
    run_id="run",
    thread="t",
    status="failed",
    reason="model_error",
    messages=MESSAGES,
    usage={"total_tokens": 3},
    turns=2,
    error={"kind": "server_error", "message": "no"},
    interrupts=[{"id": "i", "value": 1}],
)


def test_a_result_says_what_the_last_event_said() -> None:
    made = result_of(END)
    assert (made.status, made.reason, made.thread, made.run_id) == (
        "failed",
        "model_error",
        "t",
        "run",
    )
    assert (made.turns, made.usage, made.error) == (2, {"total_tokens": 3}, END.error)
    assert (made.messages, made.interrupts) == (MESSAGES, END.interrupts)
    assert made.messages is not END.messages
    assert made.final_text == "I look."


def test_the_stored_outcome_is_json_without_the_messages() -> None:
    stored = outcome_of(END, "run")
    assert json.loads(json.dumps(stored)) == stored
    assert "messages" not in stored
    assert stored["final_text"] == "I look."


def test_the_final_text_is_the_last_answer_s() -> None:
    assert final_text([answer("a", text="one"), answer("b", text="two"), user("u")]) == "two"
    assert final_text([user("u")]) == ""


def test_a_notebook_shows_text_that_cannot_become_markup() -> None:
    messages: list[AnyMessage] = [AIMessage("<script>alert(1)</script>")]
    end = AgentEnd(thread="<b>", status="completed", reason="answered", messages=messages, turns=1)
    shown = result_of(end)._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "completed (answered), 1 turns" in shown
