"""Runs that have to answer in a form, with a real server: in both modes, repaired, never right."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage
from pydantic import BaseModel, SecretStr, field_validator

from loopwright import Agent, ConfigurationError, Environment, Limits, Output, OutputError, Settings
from loopwright.events import AgentEnd, MessageUpdate
from loopwright.judging import INVALID_OUTPUT
from loopwright.outcome import RunResult
from loopwright.state.messages import calls
from loopwright.state.notes import rule_of
from loopwright.testing import HttpReply, OpenAIServer, Response, ScriptedModel

GOOD = {"city": "Oslo", "degrees": 4}
CALL = ("c1", "final_answer", GOOD)


class Weather(BaseModel):
    """What is asked for."""

    city: str
    degrees: int

    @field_validator("city")
    @classmethod
    def _known(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("there is no such city")
        return city


def look_up(city: str) -> str:
    """Look the weather up."""
    return f"4 degrees in {city}"


def asked(
    server: OpenAIServer, output: Any, tools: Iterable[Any] = (), **options: Any
) -> Agent[Any]:
    """An agent that asks the server."""
    environment = Environment(base_url=server.base_url, api_key=SecretStr("key"))
    return Agent("custom/some-model", tools, output=output, environment=environment, **options)


def run(replies: Iterable[Any], output: Any, tools: Iterable[Any] = (), **options: Any) -> Any:
    """The result of one run against a server with these replies, and the requests' bodies."""
    with OpenAIServer(replies) as server, asked(server, output, tools, **options) as agent:
        result = agent.run("How is the weather in Oslo?")
    return result, [request.body for request in server.requests]


def native(**options: Any) -> Output[Weather]:
    return Output(Weather, mode="native", **options)


def by_tool(**options: Any) -> Output[Weather]:
    return Output(Weather, mode="tool", **options)


MODES = pytest.mark.parametrize(
    ("output", "reply"),
    [
        (native(), lambda value: Response(text=json.dumps(value))),
        (by_tool(), lambda value: Response(calls=[("c1", "final_answer", value)])),
    ],
    ids=["native", "tool"],
)
Reply = Callable[[Any], Response]


@MODES
def test_an_answer_that_is_valid_at_once(output: Output[Weather], reply: Reply) -> None:
    result, requests = run([reply(GOOD)], output)
    assert (result.status, result.reason) == ("completed", "answered")
    assert result.output == result.required_output() == Weather(city="Oslo", degrees=4)
    assert len(requests) == 1


def test_the_provider_is_asked_for_the_schema() -> None:
    _, (request,) = run([json.dumps(GOOD)], native())
    asked_for = request["response_format"]
    assert asked_for["type"] == "json_schema"
    assert asked_for["json_schema"]["schema"]["required"] == ["city", "degrees"]
    assert asked_for["json_schema"]["strict"] is False  # the schema leaves other fields open
    assert "tools" not in request


def test_the_tool_is_offered_beside_the_others() -> None:
    _, (request, _) = run(
        [Response(calls=[("a", "look_up", {"city": "Oslo"})]), Response(calls=[CALL])],
        Weather,
        [look_up],
    )
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert names == ["final_answer", "look_up"]
    assert "response_format" not in request


@MODES
def test_tools_may_be_called_before_the_answer(output: Output[Weather], reply: Reply) -> None:
    first = Response(calls=[("a", "look_up", {"city": "Oslo"})])
    result, _ = run([first, reply(GOOD)], output, [look_up])
    assert result.output == Weather(city="Oslo", degrees=4)
    assert result.turns == 2
    assert any(message.text == "4 degrees in Oslo" for message in result.messages)


@MODES
@pytest.mark.parametrize("bad", [{"city": "Oslo"}, {"city": "Atlantis", "degrees": 1}])
def test_an_invalid_answer_is_repaired_once(
    output: Output[Weather], reply: Reply, bad: dict[str, Any]
) -> None:
    result, (_, second) = run([reply(bad), reply(GOOD)], output)
    assert result.output == Weather(city="Oslo", degrees=4)
    told = second["messages"][-1]["content"]
    assert "degrees" in told or "no such city" in told
    notes = [rule_of(m) for m in result.messages if rule_of(m)]
    assert notes == ([INVALID_OUTPUT] if output.form.mode == "native" else [])


@MODES
def test_an_answer_that_is_never_valid_ends_the_run(output: Output[Weather], reply: Reply) -> None:
    result, requests = run([reply({"city": 1.5})] * 9, output)
    assert (result.status, result.reason) == ("failed", INVALID_OUTPUT)
    assert result.output is None
    assert "degrees" in result.error["message"]
    assert len(requests) == 1 + output.form.repairs
    with pytest.raises(OutputError, match="invalid_output"):
        result.required_output()


def test_a_text_in_place_of_the_call_is_asked_again() -> None:
    result, (_, second) = run(["It is cold.", Response(calls=[CALL])], by_tool())
    assert result.output == Weather(city="Oslo", degrees=4)
    assert "final_answer" in second["messages"][-1]["content"]


def test_an_answer_that_was_cut_off_is_never_taken() -> None:
    cut = Response(text=json.dumps(GOOD), stop="length")
    result, _ = run([cut] * 3, native())
    assert (result.status, result.output) == ("failed", None)
    cut = Response(calls=[CALL], stop="length")
    result, _ = run([cut] * 9, by_tool())
    assert (result.status, result.output) == ("failed", None)


def test_a_filtered_answer_is_not_asked_for_again() -> None:
    result, requests = run([Response(text="{", stop="content_filter")], native())
    assert result.status == "failed"
    assert result.output is None
    assert len(requests) == 1


@MODES
def test_the_turn_limit_leaves_no_output(output: Output[Weather], reply: Reply) -> None:
    limits = Settings(limits=Limits(turns=1))
    result, _ = run([reply({})], output, settings=limits)
    assert (result.status, result.reason, result.output) == ("limit", "max_turns", None)


@MODES
@pytest.mark.anyio
async def test_the_pieces_are_streamed_and_the_value_comes_at_the_end(
    output: Output[Weather], reply: Reply
) -> None:
    async with OpenAIServer([reply(GOOD)]) as server, asked(server, output) as agent:
        events = [event async for event in agent.stream("Oslo?")]
    kinds = ("text_delta", "tool_call_delta")
    pieces = [e.delta for e in events if isinstance(e, MessageUpdate) and e.update in kinds]
    assert len(pieces) > 1 and json.loads("".join(pieces)) == GOOD
    end = events[-1]
    assert isinstance(end, AgentEnd) and end.output == GOOD


@MODES
@pytest.mark.anyio
async def test_a_follow_up_asks_for_an_answer_of_its_own(
    output: Output[Weather], reply: Reply
) -> None:
    async with OpenAIServer([reply(GOOD), reply({"city": "Bergen", "degrees": 9})]) as server:
        async with asked(server, output) as agent:
            agent.follow_up("And Bergen?")
            result = await agent.prompt("Oslo?")
    assert result.output == Weather(city="Bergen", degrees=9)


def test_an_answer_beside_other_calls_is_taken() -> None:
    both = Response(calls=[("a", "look_up", {"city": "Oslo"}), CALL])
    result, _ = run([both], by_tool(), [look_up])
    assert result.output == Weather(city="Oslo", degrees=4)
    assert result.turns == 1


@dataclass
class Point:
    x: int
    y: int


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_answers_that_are_no_objects_travel_in_one(mode: Any) -> None:
    sent = {"value": [{"x": 1, "y": 2}]}
    reply = (
        Response(text=json.dumps(sent))
        if mode == "native"
        else Response(calls=[("c1", "final_answer", sent)])
    )
    result, _ = run([reply], Output(list[Point], mode=mode))
    assert result.output == [Point(1, 2)]


def test_a_schema_gives_json_values() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    result, _ = run([Response(calls=[("c1", "final_answer", {"n": "5"})])], schema)
    assert result.output == {"n": 5}


def test_a_call_of_its_own_output(tmp_path: Path) -> None:
    with Agent(ScriptedModel(["free", Response(calls=[CALL])])) as agent:
        assert agent.run("a").output is None
        result = agent.run("b", output=Weather)
    assert result.output == Weather(city="Oslo", degrees=4)


def test_the_result_is_in_the_state_as_json() -> None:
    with Agent(ScriptedModel([Response(calls=[CALL])]), output=Weather) as agent:
        state = agent.graph.invoke({"messages": "Oslo?"})
    assert state["result"]["output"] == GOOD
    json.dumps(state["result"])


def test_a_server_may_ask_for_a_schema_of_its_own() -> None:
    schema = {"type": "object", "required": ["n"]}
    with Agent(ScriptedModel([Response(calls=[("c", "final_answer", {"n": 1})])])) as agent:
        state = agent.graph.invoke({"messages": "?"}, context={"output": schema})
    assert state["result"]["output"] == {"n": 1}


@pytest.mark.anyio
async def test_it_holds_when_a_run_is_carried_on(tmp_path: Path) -> None:
    """The form is stored; the type is given again, and without it the answer is JSON."""
    for output, expected in ((Weather, Weather(city="Oslo", degrees=4)), (None, GOOD)):
        path = tmp_path / f"{output}.db"
        config: Any = {"configurable": {"thread_id": "t"}}
        model = ScriptedModel([Response(calls=[("a", "look_up", {"city": "Oslo"})])])
        async with Agent(model, [look_up], database=path, output=Weather) as agent:
            stream = agent.graph.astream(
                {"messages": "Oslo?"}, config, interrupt_after=["tool_batch"]
            )
            async for _ in stream:
                pass
        model = ScriptedModel(["No.", Response(calls=[CALL])])
        async with Agent(model, [look_up], database=path, output=output) as agent:
            result = await agent.resume(thread="t")
        assert result.output == expected
        assert "final_answer" in model.requests[0].tool_names


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Output({"type": "nonsense"}), "no JSON schema"),
        (lambda: Output(Weather, name="a b"), "letters"),
        (lambda: Output(Weather, repairs=-1), "repairs"),
        (lambda: Output(Weather, mode="other"), "native"),  # type: ignore[arg-type]
        (lambda: Output(Agent), "no JSON schema"),
    ],
)
def test_what_is_no_form_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_a_model_that_cannot_be_asked_is_refused() -> None:
    with Agent(ScriptedModel(), output=native()) as agent:
        with pytest.raises(ConfigurationError, match="use mode 'tool'"):
            agent.run("?")


def test_a_tool_of_the_same_name_is_refused() -> None:
    def final_answer() -> str:
        """Not the runtime's."""
        return ""

    with Agent(ScriptedModel(), [final_answer], output=Weather) as agent:
        with pytest.raises(ConfigurationError, match="another name"):
            agent.run("?")


def test_the_result_is_typed() -> None:
    with Agent(ScriptedModel([Response(calls=[CALL])]), output=Weather) as agent:
        result: RunResult[Weather] = agent.run("?")
        city: str = result.required_output().city
    assert city == "Oslo"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
NEAR = st.fixed_dictionaries({"city": JSON, "degrees": JSON})
SENT = st.text(max_size=30) | (JSON | NEAR).map(json.dumps) | NEAR.map(lambda v: json.dumps(v)[:-1])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(SENT, min_size=1, max_size=2), as_call=st.booleans())
def test_whatever_a_model_sends_the_output_is_valid_or_an_error(
    texts: list[str], as_call: bool
) -> None:
    def reply(text: str) -> Response:
        return Response(calls=[("c", "final_answer", text)]) if as_call else Response(text=text)

    output = by_tool(repairs=len(texts) - 1) if as_call else native(repairs=len(texts) - 1)
    result, _ = run([reply(text) for text in texts], output)
    if result.status == "completed":
        assert Draft202012Validator(output.form.schema).is_valid(result.output.model_dump())
        assert isinstance(result.output, Weather)
    else:
        assert result.status == "failed" and result.error is not None
        assert result.output is None


def test_no_call_is_left_open() -> None:
    result, _ = run([Response(calls=[("c1", "final_answer", {})])] * 3, by_tool())
    made = [c.id for m in result.messages if isinstance(m, AIMessage) for c in calls(m)]
    answered = [m.tool_call_id for m in result.messages if m.type == "tool"]
    assert made == answered


def test_another_model_that_cannot_be_asked_for_a_schema_is_given_the_tool() -> None:
    other = ScriptedModel([Response(calls=[CALL])], model_name="other")
    with OpenAIServer([HttpReply(status=401, body={})]) as server:
        with asked(server, native(), fallback=[other]) as agent:
            result = agent.run("Oslo?")
    assert result.output == Weather(city="Oslo", degrees=4)
    assert other.requests[0].tool_names == ["final_answer"]
