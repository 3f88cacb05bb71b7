"""What the model does with other questions, on the same thread and without one."""

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.providers.offline.rules import decide
from loopwright.state.view import summary_message
from tests.providers.offline.driving import QUESTION, Dialogue, ask, cited
from tests.providers.offline.folders import write

pytestmark = pytest.mark.anyio

FILES = {
    "README.md": "# Shop\n\nA small shop in two files.\n",
    "src/cart.py": "# TODO: empty cart\nx = 1  # FIXME\n",
    "src/pay.py": "# TODO: refunds\n",
    "zzz.py": "y = 2\n",
}
TOOLS = {"list_files", "read_file", "search_text"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, FILES)


@pytest.fixture
async def surveyed(folder: Path) -> Dialogue:
    return await ask(folder)


@pytest.mark.parametrize(
    "question",
    [
        "and which of them are in cart.py?",
        "Which of those are in the file src/cart.py?",
        "which of them is in cart",
        "What is left to do in cart.py?",
    ],
)
async def test_it_knows_what_them_means_and_where_a_file_lies(
    folder: Path, surveyed: Dialogue, question: str
) -> None:
    done = await ask(folder, question, before=surveyed.messages)
    assert set(cited(done.answer, folder)) == {("src/cart.py", 1), ("src/cart.py", 2)}


async def test_it_answers_from_the_thread_for_a_folder(folder: Path, surveyed: Dialogue) -> None:
    done = await ask(folder, "which of them are in src/?", before=surveyed.messages)
    assert done.turns == 1
    assert set(cited(done.answer, folder)) == {
        ("src/cart.py", 1),
        ("src/cart.py", 2),
        ("src/pay.py", 1),
    }


async def test_it_counts_what_it_found(folder: Path, surveyed: Dialogue) -> None:
    done = await ask(folder, "How many are left?", before=surveyed.messages)
    assert done.turns == 1
    assert "3 things left to do in 2 files" in done.answer


async def test_counting_without_an_earlier_look_looks_first(folder: Path) -> None:
    done = await ask(folder, "how many todos are there?")
    assert done.turns > 3
    assert "3 things in 2 files" in done.answer


async def test_it_reads_a_file_with_line_numbers(folder: Path) -> None:
    done = await ask(folder, "Please read src/cart.py.")
    assert done.calls() == ["read_file"]
    assert "src/cart.py has 2 lines." in done.answer
    assert "src/cart.py:2: x = 1  # FIXME" in done.answer


async def test_it_says_when_a_file_cannot_be_read(folder: Path) -> None:
    done = await ask(folder, "read nope.py")
    assert "could not read nope.py" in done.answer
    assert "does not exist" in done.answer


async def test_it_searches_for_a_word(folder: Path) -> None:
    done = await ask(folder, 'search for "refunds"')
    assert set(cited(done.answer, folder)) == {("src/pay.py", 1)}


async def test_it_says_when_a_word_is_nowhere(folder: Path) -> None:
    assert "0 lines" in (await ask(folder, "grep unicorn")).answer


async def test_it_lists_files(folder: Path) -> None:
    assert (await ask(folder, "list the files")).answer.split("\n") == sorted(FILES)


async def test_it_says_what_it_can_do_to_what_it_does_not_know(folder: Path) -> None:
    done = await ask(folder, "Tell me a joke")
    assert done.turns == 1
    assert "fixed rules" in done.answer
    assert "Read FILE" in done.answer


async def test_it_summarises_the_thread(folder: Path, surveyed: Dialogue) -> None:
    question = "Summarise the conversation above for your own later use."
    done = await ask(folder, question, before=surveyed.messages)
    assert QUESTION in done.answer
    assert "In this folder: 4 files" in done.answer


async def test_a_message_that_no_rule_fits_does_not_stop_a_survey(
    folder: Path, surveyed: Dialogue
) -> None:
    unanswered = surveyed.messages[:3]
    done = await ask(folder, "and be quick", before=unanswered)
    assert set(cited(done.answer, folder)) == set(cited(surveyed.answer, folder))
    assert 'No rule of mine fits "and be quick"' in done.answer


async def test_go_on_carries_on_with_the_unanswered_question(
    folder: Path, surveyed: Dialogue
) -> None:
    done = await ask(folder, "go on", before=surveyed.messages[:3])
    assert done.answer == surveyed.answer


def test_a_call_that_was_interrupted_is_told_and_not_repeated() -> None:
    first = decide([HumanMessage(QUESTION)], TOOLS).calls[0]
    call = {"id": "1", "name": first.tool, "args": first.arguments}
    messages = [
        HumanMessage(QUESTION),
        AIMessage("", tool_calls=[call]),
        ToolMessage("interrupted", tool_call_id="1", name=first.tool, status="error"),
    ]
    assert first not in decide(messages, TOOLS).calls


def test_without_a_question_it_says_what_it_can_do() -> None:
    assert "I can only do this" in decide([], TOOLS).text


def test_results_without_their_call_are_passed_over() -> None:
    stray = ToolMessage("a.py:1: TODO", tool_call_id="gone", name="search_text")
    assert decide([HumanMessage(QUESTION), stray], TOOLS) == decide([HumanMessage(QUESTION)], TOOLS)


def compacted(messages: list[AnyMessage], kept: list[AnyMessage]) -> list[AnyMessage]:
    """What the model is sent after a compaction: its own summary of `messages`, then `kept`."""
    summary = decide([*messages, HumanMessage("Summarise the conversation above.")], set()).text
    return [summary_message(summary), *kept]


async def test_a_compaction_in_the_middle_loses_neither_question_nor_findings(
    folder: Path, surveyed: Dialogue
) -> None:
    middle = surveyed.messages[:-1]
    twice = compacted(compacted(middle, []), [])
    for view in (compacted(middle, []), twice, [*twice, HumanMessage("go on")]):
        reply = decide(view, TOOLS)
        assert not reply.calls
        assert set(cited(reply.text, folder)) == set(cited(surveyed.answer, folder))
        assert "compacted" in reply.text and QUESTION.rstrip("?") in reply.text


async def test_a_summary_of_answered_questions_asks_nothing(surveyed: Dialogue) -> None:
    view = compacted(surveyed.messages, [HumanMessage("hello")])
    assert "No rule of mine fits this message" in decide(view, TOOLS).text
    closed = compacted(surveyed.messages[:-1], [AIMessage("It was cancelled.")])
    again = compacted(closed, [HumanMessage("hello")])
    assert "No rule of mine fits this message" in decide(again, TOOLS).text
