"""The protocol of one answer: its bounds, and that what was streamed is what the answer says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from loopwright import Agent, Tool, ToolResult
from loopwright.errors import ProtocolError
from loopwright.events import MessageUpdate
from loopwright.providers.contract import StreamEnd, StreamEvent, StreamPiece, StreamStart
from loopwright.providers.protocol import AnswerCheck, same_json
from loopwright.settings import Limits, Settings
from loopwright.state.messages import Call
from loopwright.testing import Response, ScriptedModel
from tests.ledgers import unhurried
from tests.support.graphs import rig
from tests.support.providers import said

STRICT = Settings(protocol="strict")


def text(delta: str, index: int = 0, **fields: Any) -> StreamPiece:
    return StreamPiece(kind="text_delta", index=index, delta=delta, **fields)


def call(id: str = "c1", name: str = "t", arguments: Any = None, index: int = 1) -> StreamPiece:
    whole = Call(id, name, {} if arguments is None else arguments)
    return StreamPiece(kind="tool_call_end", index=index, call=whole)


def end(*blocks: Any, stop: str | None = None, **fields: Any) -> StreamEnd:
    """An answer of these texts and calls `(id, name, arguments)` in order."""
    calls = [
        {"type": "tool_call", "id": b[0], "name": b[1], "args": b[2]}
        for b in blocks
        if isinstance(b, tuple)
    ]
    waiting = iter(calls)
    content: list[Any] = [
        {"type": "text", "text": b} if isinstance(b, str) else next(waiting) for b in blocks
    ]
    reason = stop or ("tool_use" if calls else "stop")
    metadata = {"stop_reason": reason}
    message = AIMessage(content, tool_calls=calls, response_metadata=metadata, **fields)
    return StreamEnd(message=message)


def fault(
    events: Sequence[StreamEvent], settings: Settings = STRICT, used: Sequence[str] = ()
) -> str | None:
    """The fault that the events show, and at which of them."""
    check = AnswerCheck("request-001", settings, used)
    for at, event in enumerate(events):
        try:
            check.admit(event)
        except ProtocolError as error:
            assert error.kind == "protocol"
            return f"{at}: {error}"
    return None


@pytest.mark.parametrize(
    "events",
    [
        [end()],
        [text("a"), text(""), text("bc", 5), end("ab", "c")],
        [text("a"), call(), text("b", 2), end("a", ("c1", "t", {}), "b")],
        [call(arguments={"a": 1, "b": [{}]}), end(("c1", "t", {"b": [{}], "a": 1.0}))],
        [text("\ud83d"), text(""), text("\ude00"), end("\N{GRINNING FACE}")],
        [StreamStart(request_id="request-001"), text("a", request_id="request-001"), end("a")],
        [
            text("a"),
            StreamPiece(kind="tool_call_start", index=1),
            text("b", 2),
            StreamPiece(kind="tool_call_delta", index=1, delta="{}"),
            StreamEnd(message=said("ab", ("c1", "t", {}))),
        ],
        [text("half"), StreamEnd(message=said("", stop="error"))],
        [text("half"), StreamEnd(message=said("", stop="aborted"))],
    ],
)
def test_an_answer_that_keeps_the_protocol_passes(events: list[StreamEvent]) -> None:
    assert fault(events) is None


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([text("a"), end("b")], "1: what was streamed"),
        ([end("")], "0: what was streamed"),
        ([text(""), end()], "1: what was streamed"),
        ([call(), end(("c2", "t", {}))], "1: what was streamed"),
        ([call(arguments={"a": True}), end(("c1", "t", {"a": 1}))], "1: what was streamed"),
        ([call(arguments={"a": None}), end(("c1", "t", {}))], "1: what was streamed"),
        ([text("a"), call(), end(("c1", "t", {}), "a")], "2: what was streamed"),
        ([text("a", request_id="request-002")], "0: an answer to request 'request-002'"),
        ([StreamEnd(message=said("a"), request_id="")], "0: an answer to request ''"),
        ([end("a", stop="length")], "0: the answer stopped for 'length'"),
        ([end(("c1", "t", {}), stop="stop")], "0: .*'stop' with 1 tool calls"),
        ([end("a", stop="tool_use")], "0: .*'tool_use' with 0 tool calls"),
        ([end(id=" ")], "0: the answer has a blank id"),
        ([call(id=" ")], "0: a call has a blank id"),
        ([call(name="")], "0: a call has a blank id or names no tool"),
        ([call(arguments=[1])], "0: the arguments of call 'c1': .*object"),
        ([call(arguments={"x": float("nan")})], "0: .*not JSON"),
        ([end(("c1", "t", {}), ("c1", "t", {}))], "0: the id 'c1' belongs to another"),
        ([end(("old", "t", {}))], "0: the id 'old' belongs to another"),
        ([StreamEnd(message=said("", ("c1", "t", '{"a')))], "0: call 'c1' is broken"),
    ],
)
def test_what_breaks_the_protocol_is_refused_where_it_shows(
    events: list[StreamEvent], says: str
) -> None:
    found = fault(events, used=["old"])
    assert found is not None
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(found)


def test_a_negative_usage_is_refused() -> None:
    usage = {"input_tokens": -1, "output_tokens": 1, "total_tokens": 0}
    assert "negative usage" in str(fault([end(usage_metadata=usage)]))


def limited(**limits: Any) -> Settings:
    return Settings(limits=Limits(**limits))


@pytest.mark.parametrize(
    ("settings", "events", "at"),
    [
        (limited(chunks=2), [text("a"), text("b"), text("c")], "2: "),
        (limited(text=3), [text("ab"), text("c"), text("d")], "2: "),
        (limited(text=2), [text("a"), text("\ud83d"), call(), text("\ude00")], "3: "),
        (limited(text=2), [text("a"), text("\ud83d"), text("\ude00"), end("abc")], "3: "),
        (limited(blocks=2), [text("a"), call(), text("b")], "2: "),
        (limited(blocks=2), [text("a"), end("a", "", "")], "1: "),
        (limited(blocks=1), [StreamEnd(message=said("a", ("c1", "t", {})))], "0: "),
    ],
)
def test_a_bound_is_kept_without_the_rest_of_the_protocol(
    settings: Settings, events: list[StreamEvent], at: str
) -> None:
    assert str(fault(events, settings)).startswith(f"{at}the answer has more than")


def test_without_a_bound_and_without_strictness_everything_passes() -> None:
    events: list[StreamEvent] = [text("a"), call(id=" ", arguments=[1]), end("b", stop="length")]
    assert fault(events, Settings()) is None


@unhurried
@given(st.lists(st.text(max_size=4) | st.sampled_from(["\ud83d", "\ude00", "\ud83d\ude00"])))
def test_code_points_count_the_same_however_a_text_is_split(parts: list[str]) -> None:
    whole = "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    events: list[StreamEvent] = [
        *(text(part) for part in parts),
        *([end(whole)] if parts else [end()]),
    ]
    size = max(len(whole), 1)
    exact = Settings(protocol="strict", limits=Limits(text=size))
    assert fault(events, exact) is None
    if len(whole) > 1:
        assert fault(events, limited(text=size - 1)) is not None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@unhurried
@given(values, values)
def test_same_json_is_equality_in_which_true_is_not_one(a: Any, b: Any) -> None:
    assert same_json(a, a)
    if same_json(a, b):
        assert a == b
    assert not same_json({"x": True}, {"x": 1})
    assert not same_json([0], [False])


@pytest.mark.anyio
async def test_nothing_of_a_refused_piece_is_told_and_no_tool_runs() -> None:
    ran = list[str]()

    def look() -> None:
        """Look."""
        ran.append("look")

    script: list[Any] = [
        StreamStart(),
        text("ok"),
        text("too much"),
        StreamEnd(message=said("", ("c1", "look", {}))),
    ]
    made = rig(script, tools=[look], settings=limited(text=2))
    events = await made.events({"messages": "hi"})
    assert [e.delta for e in events if isinstance(e, MessageUpdate)] == ["ok"]
    assert not ran
    assert [m.type for m in await made.ledger()] == ["human", "ai"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "response",
    [
        Response(text="I am done."),
        Response(thinking="Well.", text="I look.", calls=[("c1", "look", {"x": [1, True]})]),
        Response(calls=[("c1", "look", {}), ("c2", "look", {"a": "\N{GRINNING FACE}"})]),
    ],
)
async def test_a_chat_model_that_streams_well_may_be_held_to_the_protocol(
    response: Response,
) -> None:
    async def look(arguments: Any, context: Any) -> ToolResult:
        return ToolResult(content="seen")

    tool = Tool(name="look", description="Look.", parameters={"type": "object"}, execute=look)
    async with Agent(ScriptedModel([response, "done"]), [tool], settings=STRICT) as agent:
        result = await agent.prompt("hi")
    assert result.status == "completed"
