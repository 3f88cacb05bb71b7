"""What requests, runs and threads have cost, told by runs that ask a real server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright import Agent
from loopwright.errors import UnknownThreadError
from loopwright.events import AgentEnd, MessageEnd, TurnEnd
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import ModelRequest
from loopwright.providers.prices import Price
from loopwright.runs import Run
from loopwright.settings import Environment, Limits, Settings
from loopwright.spending import cost_of, nothing, usage_of
from loopwright.testing import OpenAIServer, Response, SseReply
from loopwright.testing.server import ScriptedReply
from tests.support.graphs import rig
from tests.support.providers import said

USAGE = {"input_tokens": 1000, "output_tokens": 100}
LOOK = Response(calls=[("c1", "look", {})], usage=USAGE)
ONE = 0.00225
"""What such an answer of gpt-5 costs: 1.25 and 10 dollars for a million tokens."""


def look() -> str:
    """Look."""
    return "seen"


@contextmanager
def agent(*replies: ScriptedReply, **options: Any) -> Iterator[Agent]:
    """An agent whose model is called `openai/gpt-5`, or as `name` and `id` say."""
    id, name = options.pop("id", "openai"), options.pop("name", "gpt-5")
    fields: Any = {"stream_usage": True, "max_retries": 0}
    with OpenAIServer(replies) as server:
        model = ChatOpenAI(model=name, base_url=server.base_url, api_key=SecretStr("k"), **fields)
        with Agent(ChatModelProvider(model, id=id, name=name), [look], **options) as made:
            yield made


def test_a_request_a_turn_a_run_and_a_thread_have_their_cost() -> None:
    events: list[Any] = []
    done = Response(text="done", usage=USAGE)
    with agent(LOOK, done, done) as made:
        made.subscribe(events.append)
        result = made.run("hi")
        again = made.run("again")
        assert made.usage()["cost"] == pytest.approx(3 * ONE)
        assert made.usage(at=len(result.messages))["cost"] == pytest.approx(2 * ONE)
    assert result.usage["cost"] == result.usage["known_cost"] == pytest.approx(2 * ONE)
    assert (result.usage["input_tokens"], result.usage["estimated"]) == (2000, False)
    assert again.usage["cost"] == pytest.approx(ONE)
    told = [cost_of(e.message) for e in events if isinstance(e, MessageEnd | TurnEnd)]
    assert [cost for cost in told if cost is not None] == [pytest.approx(ONE)] * 6
    assert next(e.usage for e in events if isinstance(e, AgentEnd)) == result.usage


def test_a_cost_that_the_provider_reports_is_believed() -> None:
    reported = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cost": 0.5}
    shape = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    running = [
        {**shape, "choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"cost": 0.25}},
        {**shape, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**shape, "choices": [], "usage": reported},
    ]
    with OpenAIServer([SseReply(events=running)]) as server:
        environment = Environment(base_url=server.base_url)
        with Agent("custom/anything", environment=environment) as made:
            used = made.run("hi").usage
    assert (used["cost"], used["total_tokens"]) == (0.5, 1100)


def test_a_model_without_a_price_has_an_unknown_cost_and_not_none() -> None:
    with agent(Response(text="done", usage=USAGE), name="gpt-unheard-of") as made:
        result = made.run("hi")
        assert made.usage()["cost"] is None
    assert (result.usage["cost"], result.usage["known_cost"]) == (None, 0.0)
    assert result.usage["total_tokens"] == 1100


def test_own_prices_are_used(tmp_path: Path) -> None:
    done = Response(text="done", usage=USAGE)
    own = {"openai/gpt-5": Price(input=1000, output=0)}
    with agent(done, prices=own) as made:
        assert made.run("hi").usage["cost"] == pytest.approx(1)
    file = tmp_path / "prices.toml"
    row = '{ model = "*", input = 2000, output = 0 }'
    file.write_text(f'[elsewhere]\nsource = "x"\ndate = 2026-11-30\nrows = [{row}]\n')
    environment = Environment(prices=file)
    with agent(done, id="elsewhere", environment=environment) as made:
        assert made.run("hi").usage["cost"] == pytest.approx(2)


def test_an_answer_that_nobody_counted_is_marked() -> None:
    with agent("It is fine, as far as I can see.") as made:
        result = made.run("How is it?")
    usage = result.usage
    assert usage["estimated"] and usage["cost"] is not None and usage["cost"] > 0
    assert usage["input_tokens"] >= 4 and usage["output_tokens"] >= 8
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_run_ends_when_it_has_cost_as_much_as_it_may() -> None:
    settings = Settings(limits=Limits(cost=2 * ONE))
    with agent(*[LOOK] * 5, settings=settings) as made:
        result = made.run("hi")
    assert (result.status, result.reason, result.turns) == ("limit", "max_cost", 2)


def test_a_local_model_costs_nothing_at_all() -> None:
    with Agent("offline") as made:
        assert made.run("hi").usage["cost"] == 0.0


def test_a_thread_that_was_exported_keeps_its_totals(tmp_path: Path) -> None:
    for name, reply in (("gpt-5", "counted by nobody"), ("unheard-of", "without a price")):
        file = tmp_path / f"{name}.jsonl"
        with agent(reply, name=name, thread="t") as made:
            made.run("hi")
            before = made.usage()
            made.export("t", file)
        with Agent("offline") as other:
            assert other.usage(other.import_(file).thread) == before


def test_a_thread_that_is_not_stored_has_no_totals() -> None:
    with Agent("offline") as made, pytest.raises(UnknownThreadError):
        made.usage("nowhere")


def priced(message: AIMessage, cost: float) -> AIMessage:
    usage: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    about = {**message.response_metadata, "cost": cost}
    return message.model_copy(update={"usage_metadata": usage, "response_metadata": about})


@pytest.mark.anyio
async def test_a_summary_counts_for_the_run_and_the_thread_that_needed_it() -> None:
    limits = Settings(context_window=10, compaction_tail=1)
    long = priced(said("x" * 400, ("c1", "look", {})), 1.0)
    replies = [long, priced(said("a summary"), 0.25), priced(said("done"), 0.5)]
    made = rig(*replies, tools=[look], settings=limits)
    result = await made.run({"messages": "hi " * 100})
    assert result.usage["cost"] == 1.75
    assert usage_of(result.messages)["cost"] == 1.5
    state = await made.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert state.values["usage"]["cost"] == 1.75


@pytest.mark.anyio
async def test_what_was_spent_beside_the_answers_counts_even_if_the_step_fails() -> None:
    spent: list[Run] = []

    def broken(request: ModelRequest) -> Exception:
        spent[0].spend(priced(AIMessage("half"), 0.25))
        return RuntimeError("boom")

    made = rig(broken, observers=(spent.append,))
    result = await made.run({"messages": "hi"})
    assert (result.status, result.usage["cost"]) == ("failed", 0.25)
    state = await made.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert state.values["usage"]["total_tokens"] == 11


def test_the_totals_of_nothing() -> None:
    assert nothing()["cost"] == 0.0 and usage_of([]) == nothing()
