"""A message is put together from chunks so that no cut call runs, however the stream was split."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk

from loopwright.errors import ModelError
from loopwright.providers.assembly import Answer
from loopwright.state.messages import calls, error_of, stop_reason
from tests.providers.test_arguments import OBJECTS, TEXT


def text(value: str, **fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content=value, **fields)


def call(*pieces: tuple[int | None, str | None, str | None, str | None]) -> AIMessageChunk:
    """A chunk with these fragments of calls: index, id, name, argument text."""
    fragments = [
        tool_call_chunk(index=index, id=id, name=name, args=args)
        for index, id, name, args in pieces
    ]
    return AIMessageChunk(content="", tool_call_chunks=fragments)


def end(word: str) -> AIMessageChunk:
    return AIMessageChunk(content="", response_metadata={"finish_reason": word})


def answer(*chunks: AIMessage) -> Answer:
    made = Answer(provider="p", model="m")
    for chunk in chunks:
        made.add(chunk)
    made.close()
    return made


def message(*chunks: AIMessage) -> AIMessage:
    return answer(*chunks).message()


def pieces(*chunks: AIMessage) -> list[tuple[str, int, str]]:
    made = Answer(provider="p", model="m")
    events = [piece for chunk in chunks for piece in made.add(chunk)] + made.close()
    return [(event.kind, event.index, event.delta) for event in events]


def split(data: st.DataObject, value: str) -> list[str]:
    """The text in pieces, some of them empty."""
    at = sorted(data.draw(st.lists(st.integers(0, len(value)), max_size=6)))
    return [value[a:b] for a, b in zip([0, *at], [*at, len(value)], strict=True)]


@given(TEXT, OBJECTS, OBJECTS, st.sampled_from(["numbered", "unnumbered", "repeated"]), st.data())
def test_the_message_does_not_depend_on_how_the_stream_was_split(
    words: str, first: dict[str, Any], second: dict[str, Any], style: str, data: st.DataObject
) -> None:
    stream = [text(piece) for piece in split(data, words)]
    for index, arguments in enumerate([first, second]):
        id, name = f"c{index}", f"tool{index}"
        number = None if style == "unnumbered" else index
        head, *rest = split(data, json.dumps(arguments))
        stream.append(call((number, id, name, head)))
        again = (id, name) if style == "repeated" else (None, None)
        stream += [call((number, *again, piece)) for piece in rest]
    made = message(*stream, end("tool_calls"))
    assert made.content == words
    assert [(c["id"], c["name"], c["args"]) for c in made.tool_calls] == [
        ("c0", "tool0", first),
        ("c1", "tool1", second),
    ]
    assert made.invalid_tool_calls == []


@given(OBJECTS, OBJECTS, st.data())
def test_calls_that_stream_at_the_same_time_are_kept_apart(
    first: dict[str, Any], second: dict[str, Any], data: st.DataObject
) -> None:
    heads = [call((0, "a", "f", "")), call((1, "b", "f", ""))]
    waiting = [
        [call((index, None, None, piece)) for piece in split(data, json.dumps(arguments))]
        for index, arguments in enumerate([first, second])
    ]
    mixed: list[AIMessage] = []
    while any(waiting):
        queue = data.draw(st.sampled_from([queue for queue in waiting if queue]))
        mixed.append(queue.pop(0))
    made = message(*heads, *mixed, end("tool_calls"))
    assert [c["args"] for c in made.tool_calls] == [first, second]


@given(OBJECTS, st.sampled_from(["tool_calls", "stop", "length", "content_filter"]), st.data())
def test_a_call_whose_arguments_were_cut_never_runs(
    arguments: dict[str, Any], word: str, data: st.DataObject
) -> None:
    whole = json.dumps(arguments)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    made = message(call((0, "c", "write", cut)), end(word))
    assert made.tool_calls == []
    (broken,) = made.invalid_tool_calls
    assert (broken["id"], broken["name"], broken["args"]) == ("c", "write", cut)
    assert "cut off" in str(broken["error"])


@given(TEXT, st.data())
def test_the_deltas_of_a_block_add_up_to_its_text(words: str, data: st.DataObject) -> None:
    told = pieces(*[text(piece) for piece in split(data, words)], end("stop"))
    assert "".join(delta for kind, _, delta in told if kind == "text_delta") == words


@pytest.mark.parametrize("word", ["length", "content_filter"])
def test_no_call_of_an_answer_that_was_cut_runs(word: str) -> None:
    made = message(call((0, "a", "read", '{"p":1}')), call((1, "b", "write", '{"p":')), end(word))
    assert made.tool_calls == []
    assert [c["id"] for c in made.invalid_tool_calls] == ["a", "b"]
    assert all("cut off" in str(c["error"]) for c in made.invalid_tool_calls)
    assert stop_reason(made) == word


def test_only_the_broken_call_of_several_is_refused() -> None:
    made = message(call((0, "a", "f", "{bad"), (1, "b", "f", "{}")), end("tool_calls"))
    assert [(c.id, bool(c.error)) for c in calls(made)] == [("b", False), ("a", True)]
    assert stop_reason(made) == "tool_use"


def test_a_call_without_a_name_is_refused() -> None:
    (broken,) = message(call((0, "a", " ", "{}")), end("tool_calls")).invalid_tool_calls
    assert "name" in str(broken["error"])


def test_blank_missing_and_repeated_ids_become_fresh_ones() -> None:
    made = message(
        call((0, "", "f", "{}")),
        call((1, None, "f", "{}")),
        call((2, "k", "f", "{}")),
        call((3, "k", "g", "{}")),
        end("tool_calls"),
    )
    ids = [c["id"] for c in made.tool_calls]
    assert ids[2] == "k"
    assert len({*ids}) == 4
    assert all(ids)


def test_text_only_is_a_string_and_thinking_makes_blocks() -> None:
    assert message(text("a"), call((0, "c", "f", "{}")), text("b"), end("stop")).content == "ab"
    thought = AIMessageChunk(content="", additional_kwargs={"reasoning_content": "hm"})
    assert message(thought, thought, text("a"), end("stop")).content == [
        {"type": "reasoning", "reasoning": "hmhm"},
        {"type": "text", "text": "a"},
    ]


def test_thinking_keeps_its_signature_and_separate_blocks() -> None:
    def thinking(index: int, **fields: str) -> AIMessageChunk:
        return AIMessageChunk(content=[{"type": "thinking", "index": index, **fields}])

    made = message(
        thinking(0, thinking="one"),
        thinking(0, signature="s"),
        thinking(1, thinking="two"),
        end("end_turn"),
    )
    assert made.content == [
        {"type": "reasoning", "reasoning": "one", "extras": {"signature": "s"}},
        {"type": "reasoning", "reasoning": "two"},
    ]


def test_every_block_has_its_start_deltas_and_end_under_its_own_index() -> None:
    thought = AIMessageChunk(content="", additional_kwargs={"reasoning_content": "hm"})
    stream = [
        thought,
        text("so"),
        call((0, "a", "f", "{"), (1, "b", "f", "")),
        call((0, None, None, "}")),
        text("!"),
        end("tool_calls"),
    ]
    assert pieces(*stream) == [
        ("thinking_start", 0, ""),
        ("thinking_delta", 0, "hm"),
        ("thinking_end", 0, ""),
        ("text_start", 1, ""),
        ("text_delta", 1, "so"),
        ("text_end", 1, ""),
        ("tool_call_start", 2, ""),
        ("tool_call_delta", 2, "{"),
        ("tool_call_start", 3, ""),
        ("tool_call_delta", 2, "}"),
        ("text_start", 4, ""),
        ("text_delta", 4, "!"),
        ("text_end", 4, ""),
        ("tool_call_end", 2, ""),
        ("tool_call_end", 3, ""),
    ]


def test_empty_chunks_begin_no_block() -> None:
    assert pieces(text(""), call((0, None, None, None)), end("stop")) == []


def test_a_surrogate_pair_that_was_split_is_one_character() -> None:
    told = pieces(text("a\ud83d"), text("\ude80b"), end("stop"))
    assert [delta for kind, _, delta in told if kind == "text_delta"] == ["a", "\U0001f680b"]
    assert message(text("a\ud83d"), text("\ude80"), end("stop")).content == "a\U0001f680"


def test_a_lone_surrogate_is_replaced() -> None:
    told = pieces(text("a\ud83d"), end("stop"))
    assert "".join(delta for _, _, delta in told) == message(text("a\ud83d"), end("stop")).content
    assert told[-2] == ("text_delta", 0, "\ufffd")
    made = message(call((0, "c\ud800", "f", '{"t":"\\ud99c"}')), end("stop"))
    assert made.tool_calls == [tool_call(id="c\ufffd", name="f", args={"t": "\ufffd"})]


def test_the_first_chunk_s_id_is_the_message_s_and_a_missing_one_is_made() -> None:
    assert message(text("a", id="m1"), text("b", id="m2")).id == "m1"
    made = answer(text("a", id=" "), text("b", id="m1"))
    assert made.message_id not in ("m1", " ", "", None)
    assert made.message().id == made.message_id
    assert answer().failed(ModelError("x", kind="server_error")).id


def test_metadata_says_where_the_answer_is_from_and_why_it_stopped() -> None:
    assert message(text("a"), end("end_turn")).response_metadata == {
        "stop_reason": "stop",
        "model": "m",
        "provider": "p",
        "finish_reason": "end_turn",
    }


def test_an_answer_is_complete_only_with_an_end_of_its_own() -> None:
    assert not answer(text("a")).is_complete
    assert not answer(text("a"), text("", chunk_position="last")).is_complete
    assert answer(text("a"), end("stop")).is_complete
    assert answer(text("a", chunk_position="last")).is_complete
    assert answer(AIMessage("a")).is_complete


def test_a_whole_message_is_checked_like_a_stream() -> None:
    made = message(
        AIMessage(
            content="",
            tool_calls=[
                tool_call(id="a", name="f", args={"n": 1}),
                tool_call(id="b", name="f", args={"n": float("nan")}),
                tool_call(id="", name="f", args={}),
            ],
            invalid_tool_calls=[invalid_tool_call(id="d", name="f", args="{bad", error=None)],
        )
    )
    assert [c["args"] for c in made.tool_calls] == [{"n": 1}, {}]
    assert [c["id"] for c in made.invalid_tool_calls] == ["b", "d"]


def test_a_function_call_of_the_old_form_is_a_call() -> None:
    def old(**fields: str) -> AIMessageChunk:
        return AIMessageChunk(content="", additional_kwargs={"function_call": fields})

    made = message(
        old(name="f", arguments=""), old(name="", arguments='{"a":1}'), end("function_call")
    )
    assert [(c["name"], c["args"]) for c in made.tool_calls] == [("f", {"a": 1})]


@pytest.mark.parametrize("ended", [[], [end("tool_calls")]])
def test_an_answer_that_broke_off_keeps_its_text_and_drops_its_calls(
    ended: Sequence[AIMessage],
) -> None:
    made = answer(text("so far", id="m1"), call((0, "c", "f", "{}")), *ended)
    failed, aborted = made.failed(ModelError("it broke", kind="server_error")), made.aborted()
    assert (failed.content, calls(failed), stop_reason(failed)) == ("so far", [], "error")
    assert error_of(failed) == {"kind": "server_error", "message": "it broke"}
    assert (aborted.content, calls(aborted), stop_reason(aborted)) == ("so far", [], "aborted")
    assert aborted.response_metadata["error_message"] == "Request was aborted"
    assert failed.id == aborted.id == "m1"
