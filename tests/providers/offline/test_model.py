"""The offline model as a langchain chat model: it streams, calls, counts, and is deterministic."""

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage

from loopwright.errors import ConfigurationError
from loopwright.providers.offline.model import OfflineModel
from tests.providers.offline.driving import QUESTION

pytestmark = pytest.mark.anyio

LIST = {"type": "function", "function": {"name": "list_files", "parameters": {"type": "object"}}}


def joined(pieces: list[AIMessageChunk]) -> AIMessageChunk:
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece
    return whole


async def test_it_streams_text_and_calls_in_pieces() -> None:
    model = OfflineModel().bind_tools([LIST])
    pieces = [piece async for piece in model.astream(QUESTION)]
    whole = joined(pieces)  # type: ignore[arg-type]
    assert len(pieces) >= 4
    assert whole.text
    assert [(c["name"], c["args"]) for c in whole.tool_calls] == [("list_files", {"limit": 500})]
    assert whole.usage_metadata is not None and whole.usage_metadata["output_tokens"] > 0
    assert whole.response_metadata["finish_reason"] == "tool_calls"


async def test_all_ways_of_asking_give_the_same_message() -> None:
    model = OfflineModel().bind_tools([LIST])
    messages: list[BaseMessage] = [HumanMessage(QUESTION)]
    asked = model.invoke(messages)
    streamed = joined(list(model.stream(messages)))  # type: ignore[arg-type]
    for other in (await model.ainvoke(messages), streamed):
        assert (other.text, other.tool_calls) == (asked.text, asked.tool_calls)
        assert other.usage_metadata == asked.usage_metadata
    assert isinstance(asked, AIMessage) and not isinstance(asked, AIMessageChunk)


def test_a_long_answer_comes_in_many_pieces_and_loses_nothing() -> None:
    pieces = list(OfflineModel().stream("hello"))
    assert len(pieces) > 5
    assert "".join(piece.text for piece in pieces) == OfflineModel().invoke("hello").text


def test_calls_of_a_longer_transcript_have_other_ids() -> None:
    model = OfflineModel().bind_tools([LIST])
    first = model.invoke([HumanMessage(QUESTION)])
    again = model.invoke([HumanMessage(QUESTION), first, HumanMessage(QUESTION)])
    assert first.tool_calls[0]["id"] != again.tool_calls[0]["id"]


@pytest.mark.parametrize("choice", ["any", "required", "list_files"])
def test_a_call_cannot_be_forced(choice: str) -> None:
    with pytest.raises(ConfigurationError, match="tool_choice"):
        OfflineModel().bind_tools([LIST], tool_choice=choice)


def test_with_tool_choice_none_nothing_is_called() -> None:
    assert not OfflineModel().bind_tools([LIST], tool_choice="none").invoke(QUESTION).tool_calls


def test_a_stop_word_ends_the_text() -> None:
    assert OfflineModel().invoke("hello", stop=["fixed"]).text == "(I am the offline model: "


def test_it_says_in_name_and_text_that_it_is_no_language_model() -> None:
    assert OfflineModel().model_name == "offline-rules"
    assert "not a language model" in OfflineModel().invoke("hello").text
