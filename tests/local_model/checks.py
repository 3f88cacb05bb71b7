"""Our agent against a real model: streams, counts, a cancelled answer, a call made by a schema.

What so small a model says is worth nothing; what is checked is how it is said.
"""

import asyncio
from collections.abc import Iterator
from typing import Literal

import httpx
import pytest

from loopwright import Agent
from loopwright.events import MessageUpdate
from loopwright.providers.prices import Price
from loopwright.settings import Environment, Limits, Settings
from tests.local_model.constrained import ConstrainedCalls
from tests.local_model.serving import ANSWER_TOKENS, served

pytestmark = pytest.mark.timeout(600)
FREE = {"custom/*": Price(input=0, output=0)}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


def agent(address: str) -> Agent:
    """An agent that asks the server as any other OpenAI-compatible one."""
    environment = Environment(base_url=f"{address}/v1")
    settings = Settings(limits=Limits(length_rounds=1))
    return Agent("custom/smollm2", environment=environment, settings=settings, prices=FREE)


async def pieces(made: Agent, prompt: str) -> list[tuple[float, str]]:
    """When each piece of the run's answers came, and its text."""
    now = asyncio.get_running_loop().time
    return [
        (now(), event.delta)
        async for event in made.stream(prompt)
        if isinstance(event, MessageUpdate) and event.update == "text_delta"
    ]


@pytest.mark.anyio
async def test_an_answer_is_streamed_and_counted(address: str) -> None:
    async with agent(address) as made:
        come = await pieces(made, "Tell me about the sea.")
        answers, usage = [m for m in made.messages() if m.type == "ai"], made.usage()
        again = await made.prompt("And about ships?")
    # An answer as long as the server's longest one is asked to go on, so there may be two.
    most = ANSWER_TOKENS * len(answers)
    assert len(come) > 5
    assert "".join(text for _, text in come) == "".join(m.text for m in answers)
    assert usage["input_tokens"] > 5 and 5 < usage["output_tokens"] <= most
    assert not usage["estimated"] and usage["cost"] == 0.0
    assert again.status == "completed" and again.usage["cached_tokens"] > 0
    seconds = come[-1][0] - come[0][0]
    print(
        f"\nSmolLM2-135M: {usage['output_tokens']} tokens in {len(come)} pieces, "
        f"{(usage['output_tokens'] - 1) / seconds:.1f} tokens per second; "
        f"the second run sent {again.usage['input_tokens']}, "
        f"of which {again.usage['cached_tokens']} were in the server's cache"
    )


@pytest.mark.anyio
async def test_a_cancelled_answer_stops_the_server_and_keeps_the_thread(address: str) -> None:
    async with agent(address) as made, httpx.AsyncClient() as http:
        before = await generated(http, address)
        run = made.prompt("Write a very long story about a ship.")
        count = 0
        async for event in run:
            count += isinstance(event, MessageUpdate) and bool(event.delta)
            if count == 3:
                made.abort()
        result = await run
        assert (result.status, result.reason) == ("cancelled", "aborted")
        # The server has one slot: this answer can only begin when the other one is over.
        hello = await made.prompt("Say hello.")
        assert hello.status == "completed"
        made_before = await generated(http, address) - before - hello.usage["output_tokens"]
    assert made_before < ANSWER_TOKENS / 2
    assert result.usage["estimated"] and 0 < result.usage["output_tokens"] < ANSWER_TOKENS


async def generated(http: httpx.AsyncClient, address: str) -> int:
    """How many tokens the server has made so far in all answers that are over."""
    told = (await http.get(f"{address}/metrics")).text
    counts = (line.split() for line in told.splitlines() if not line.startswith("#"))
    return next(int(count) for name, count in counts if name.endswith("tokens_predicted_total"))


@pytest.mark.anyio
async def test_a_call_that_a_schema_has_made_runs_its_tool(address: str) -> None:
    asked: list[str] = []

    def weather(city: Literal["Oslo", "Rome"]) -> str:
        """The weather in a city."""
        asked.append(city)
        return f"It is sunny in {city}."

    model = ConstrainedCalls(address, "smollm2")
    settings = Settings(limits=Limits(turns=3))
    async with Agent(model, [weather], "Use the tools.", settings=settings) as made:
        result = await made.prompt("What is the weather in Rome?")
    assert result.status == "completed" and len(asked) == 1 and asked[0] in ("Oslo", "Rome")
    assert [message.type for message in result.messages] == ["human", "ai", "tool", "ai"]
    assert result.final_text.strip() and result.usage["cost"] == 0.0
    print(f"\nSmolLM2-135M called weather({asked[0]!r}) and said {result.final_text[:60]!r}")
