"""The file of a thread: it comes back as it was, and nothing that is wrong with it is taken."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.errors import ThreadFileError
from loopwright.state import thread_file
from loopwright.state.schema import View
from loopwright.state.thread_file import MOST_DEPTH, ThreadFile, dumped, parsed
from tests.ledgers import user

CALL = {"name": "look", "args": {"at": [1, None, {"deep": "é"}]}, "id": "c1", "type": "tool_call"}
MESSAGES: list[AnyMessage] = [
    SystemMessage("Be short.", id="s"),
    HumanMessage([{"type": "text", "text": "\u2028\x00 hi"}], id="u"),
    AIMessage("", id="a", tool_calls=[CALL], response_metadata={"stop_reason": "tool_use"}),
    ToolMessage("seen", tool_call_id="c1", id="r", artifact={"n": 1}, status="error"),
]
WHOLE = ThreadFile(
    "t",
    messages=MESSAGES,
    system_prompt="Help.",
    compaction=View(head=[user("summary")], start=2, measured_from=4),
    usage={"input_tokens": 3},
    results=[ToolMessage("held", tool_call_id="c2", id="h")],
    queued=[("steering", user("wait")), ("follow_up", user("later"))],
)


def text(thread: ThreadFile = WHOLE) -> str:
    return "".join(dumped(thread, "2026-01-01T00:00:00+00:00"))


def read(content: str | bytes) -> ThreadFile:
    data = content.encode() if isinstance(content, str) else content
    return parsed(io.BytesIO(data), "t.jsonl")


def test_a_file_gives_back_what_was_written() -> None:
    assert read(text()) == WHOLE
    assert read(text(ThreadFile("empty"))) == ThreadFile("empty")
    assert text().count("\n") == 2 + 4 + 2
    assert json.loads(text().splitlines()[0])["format"] == "loopwright.thread"


def test_what_has_no_json_form_is_left_out_with_a_note() -> None:
    odd = ToolMessage("x", tool_call_id="c", id="r", artifact={"b": b"\xff\x00", "o": object()})
    nan = HumanMessage("x", id="n", additional_kwargs={"n": float("nan")})
    found = read(text(ThreadFile("t", messages=[odd, nan]))).messages
    assert isinstance(found[0], ToolMessage)
    assert found[0].artifact == {"b": "_wA=", "o": {"note": "left out: a value of type object"}}
    assert found[1].additional_kwargs == {"n": None}


@given(st.integers(0, len(text())))
def test_a_file_cut_anywhere_gives_its_beginning_or_is_refused(end: int) -> None:
    cut = text()[:end]
    header = text().index("\n")
    if end < header:
        with pytest.raises(ThreadFileError):
            read(cut)
        return
    found = read(cut)
    assert found.messages == MESSAGES[: len(found.messages)]
    assert found.queued == WHOLE.queued[: len(found.queued)]
    assert len(found.messages) + len(found.queued) >= cut.count("\n") - 2
    whole = end >= len(text()) - 1
    assert found.torn is not whole


def line(at: int, change: Callable[[Any], Any]) -> str:
    """The file with the line at an index changed."""
    lines = text().splitlines(keepends=True)
    lines[at] = json.dumps(change(json.loads(lines[at]))) + "\n"
    return "".join(lines)


def message(**changes: Any) -> Callable[[Any], Any]:
    return lambda value: {"message": {**value["message"], **changes}}


HOSTILE = {
    "another class": line(2, lambda _: {"lc": 1, "type": "constructor", "id": ["os", "system"]}),
    "a class as message": line(2, message(type="constructor", id=["subprocess", "Popen"])),
    "a removal": line(2, message(type="remove")),
    "a chunk": line(2, message(type="AIMessageChunk")),
    "no message": line(2, message(data=None)),
    "a wrong field": line(4, message(data={"content": "", "tool_calls": 3})),
    "a field of another kind": line(
        2, message(type="ai", data={"content": "", "additional_kwargs": 1})
    ),
    "a call that is none": line(2, message(type="ai", data={"content": "", "tool_calls": [[]]})),
    "a result of no call": line(2, message(type="tool", data={"content": "x"})),
    "no content": line(3, message(data={"id": "u"})),
    "two types": line(3, message(data={"content": "x", "type": "ai"})),
    "a number too large": line(
        3, message(data={"content": "x", "additional_kwargs": {"n": 2**70}})
    ),
    "another queue": line(6, lambda value: {**value, "queue": "other"}),
    "more in a line": line(2, lambda value: {**value, "more": 1}),
    "no object": line(2, lambda _: [1]),
    "a wrong view": line(1, lambda value: {**value, "compaction": {"head": [], "start": -1}}),
    "a wrong start": line(
        1, lambda v: {**v, "compaction": {"head": [], "start": True, "measured_from": 0}}
    ),
    "a result that is none": line(
        1, lambda v: {**v, "results": [{"type": "human", "data": {"content": ""}}]}
    ),
    "a prompt that is no text": line(1, lambda value: {**value, "system_prompt": 1}),
    "usage that is none": line(1, lambda value: {**value, "usage": {"a": -1}}),
    "another state": line(1, lambda _: {}),
    "fewer in the header": line(0, lambda value: {**value, "messages": 3}),
    "another version": line(0, lambda value: {**value, "version": 2}),
    "another format": line(0, lambda value: {**value, "format": "x"}),
    "no thread": line(0, lambda value: {**value, "thread": 1}),
    "a wrong count": line(0, lambda value: {**value, "messages": "4"}),
    "a torn line": text().replace('{"message"', '{"mess', 1),
    "an empty line": text().replace("\n", "\n\n", 1),
    "a number of its own": text().replace('"usage":{"input_tokens":3}', '"usage":{"a":NaN}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_that_no_export_has_written_is_named(name: str) -> None:
    with pytest.raises(ThreadFileError, match=r"cannot use line \d+ of 't.jsonl': ") as refused:
        read(HOSTILE[name])
    assert refused.value.line > 0


def test_a_message_that_stands_behind_a_queued_one_is_refused() -> None:
    lines = text().splitlines(keepends=True)
    with pytest.raises(ThreadFileError, match=r"line 6 .* behind a queued one"):
        read("".join([*lines[:4], lines[6], *lines[4:6]]))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n", b"PK\x03\x04\n", b"[" * 100_000, b"\n"])
def test_what_is_no_such_file_is_refused(content: bytes) -> None:
    with pytest.raises(ThreadFileError):
        read(content)


def nested(levels: int) -> str:
    """The file with containers inside containers in a message."""
    deep = '{"a":' * levels + "1" + "}" * levels
    return text().replace('"artifact":{"n":1}', f'"artifact":{deep}')


def test_a_line_may_be_deep_but_not_too_deep() -> None:
    assert read(nested(MOST_DEPTH - 3)).messages
    for levels in (MOST_DEPTH, 5_000, 200_000):
        with pytest.raises(ThreadFileError, match="line 6"):
            read(nested(levels))


def test_a_file_may_be_large_but_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(len(line) for line in text().splitlines())
    monkeypatch.setattr(thread_file, "LONGEST_LINE", longest + 1)
    assert read(text()) == WHOLE
    monkeypatch.setattr(thread_file, "LONGEST_LINE", longest - 1)
    with pytest.raises(ThreadFileError, match=f"longer than {longest - 1} bytes"):
        read(text())
    monkeypatch.undo()
    monkeypatch.setattr(thread_file, "LARGEST_FILE", len(text()) - 1)
    with pytest.raises(ThreadFileError, match=r"line 8 .* longer"):
        read(text())


def test_data_that_looks_like_a_class_stays_data() -> None:
    trick = {"lc": 1, "type": "constructor", "id": ["langchain", "x", "Y"], "kwargs": {}}
    sent = HumanMessage([{"type": "text", "text": "x", "extra": trick}], id="u")
    (found,) = read(text(ThreadFile("t", messages=[sent]))).messages
    assert found.content == sent.content
