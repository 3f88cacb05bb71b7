"""What a reader sees of a run's events."""

from dataclasses import fields

import pytest
from langchain_core.messages import AIMessage

from loopwright.cli.screen import REPAIRS, RunView, Screen, ending
from loopwright.events import (
    AgentEnd,
    AnyEvent,
    Compaction,
    MessageEnd,
    MessageUpdate,
    QueueUpdate,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from loopwright.state.repair import RepairReport


def shown(capsys: pytest.CaptureFixture[str], *events: AnyEvent) -> tuple[str, str]:
    """What a view of these events prints: the answer's stream, and the other one."""
    view = RunView(Screen(), Screen(stderr=True))
    for event in events:
        view.show(event)
    printed = capsys.readouterr()
    return printed.out, printed.err


def delta(text: str) -> MessageUpdate:
    return MessageUpdate(message_id="m", update="text_delta", index=0, delta=text)


def test_a_streamed_answer_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    message = MessageEnd(message=AIMessage("Hello you", id="m"))
    assert shown(capsys, delta("Hello"), delta(" you"), message) == ("Hello you\n", "")


def test_an_answer_without_pieces_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    message = MessageEnd(message=AIMessage([{"type": "text", "text": "Hi"}], id="m"))
    assert shown(capsys, message) == ("Hi\n", "")


def test_thinking_and_calls_are_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    thought = MessageUpdate(message_id="m", update="thinking_delta", index=0, delta="hm")
    assert shown(capsys, thought, MessageEnd(message=AIMessage("", id="m"))) == ("", "")


def test_results_that_end_in_another_order_name_their_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = [
        ToolExecutionStart(tool_call_id=id, tool_name="look", arguments={"at": id}) for id in "ab"
    ]
    ends = [
        ToolExecutionEnd(tool_call_id="b", tool_name="look", content="\nx\ny", is_error=False),
        ToolExecutionEnd(tool_call_id="a", tool_name="look", content="no\x1b[1m", is_error=True),
    ]
    _, progress = shown(capsys, *calls, *ends)
    assert progress.splitlines() == [
        "-> 1  look(at='a')",
        "-> 2  look(at='b')",
        "<- 2  ok: x ... (2 lines)",
        "<- 1  error: no",
    ]


def test_what_happens_beside_the_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, progress = shown(
        capsys,
        Compaction(tokens_before=900, tokens_after=90),
        Retry(attempt=2, kind="rate_limit", reason="busy", wait=1.5),
        QueueUpdate(queue="steering", delivered=1, waiting=0),
    )
    assert "from 900 to 90 tokens" in progress
    assert "retry 2 in 1.5 s: busy" in progress
    assert "1 queued message delivered" in progress


def test_every_count_of_a_repair_has_words() -> None:
    assert set(REPAIRS) == {field.name for field in fields(RepairReport)}


def test_the_ending_of_a_failed_run_says_why_and_what_next() -> None:
    end = AgentEnd(
        thread="t",
        status="failed",
        reason="model_error",
        messages=[],
        turns=1,
        error={"kind": "server_error", "message": "down\x1b[31m"},
    )
    line = "failed (model_error), 1 turn: down [server_error]; the next prompt on this thread works"
    assert ending(end) == line
