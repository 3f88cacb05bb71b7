"""How a run ends: each termination rule walked from a prompt to its status and reason.

`docs/design.md` shows the table below; a test here compares them.
"""

import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import interrupt

from loopwright import Agent
from loopwright.budgets import Purse
from loopwright.errors import ContextOverflowError, ContinuationError
from loopwright.forms import OutputForm
from loopwright.hooks import Hooks
from loopwright.ongoing import OngoingRun
from loopwright.outcome import RunResult
from loopwright.planning import plan_tool
from loopwright.runs import Run
from loopwright.settings import Limits, Settings
from loopwright.state.schema import Tree
from loopwright.testing import Gate, VirtualClock
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.support.providers import Scripted, ScriptedProvider, said, steps

FORM = OutputForm(schema={"type": "object"})
DESIGN = Path(__file__).parent.parent / "docs" / "design.md"


@dataclass(frozen=True)
class Ending:
    """A row of the table: what happens, who decides it, and what a caller sees."""

    rule: str
    decision: str
    edge: str
    status: str
    reason: str
    test: str


ENDINGS = [
    Ending(
        "the answer has no calls and nothing is queued",
        "`model`: satisfied; `queue_drain`: idle",
        "`queue_drain` → `finish`",
        "completed",
        "answered",
        "test_an_answer_without_calls",
    ),
    Ending(
        "every result of a batch asks to end the run and nothing is queued",
        "`tool_batch`: satisfied; `queue_drain`: idle",
        "`queue_drain` → `finish`",
        "completed",
        "terminated",
        "test_a_batch_that_terminates",
    ),
    Ending(
        "the turn limit is reached and the batch wants another turn",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "max_turns",
        "test_the_turn_limit",
    ),
    Ending(
        "the run has taken its time and the batch wants another turn",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "max_seconds",
        "test_the_time_limit",
    ),
    Ending(
        "the answers have used the tokens and the batch wants another turn",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "max_tokens",
        "test_the_token_limit",
    ),
    Ending(
        "the answers have cost what they may and the batch wants another turn",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "max_cost",
        "test_the_cost_limit",
    ),
    Ending(
        "the wallet is empty and the batch wants another turn",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "max_calls",
        "test_an_empty_wallet",
    ),
    Ending(
        "others have emptied the wallet before a request",
        "`model`: stopped",
        "`model` → `finish`",
        "limit",
        "max_calls",
        "test_a_request_that_cannot_be_paid_for",
    ),
    Ending(
        "the model calls a tool although it was told that its tokens are used up",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "limit",
        "token_budget",
        "test_the_token_budget",
    ),
    Ending(
        "calls are cut off at the output limit too often in a row",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "failed",
        "output_limit",
        "test_calls_that_are_cut_again_and_again",
    ),
    Ending(
        "a call repeats others, as the policy on repetition says",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "stopped",
        "repeated_action",
        "test_a_repeated_action",
    ),
    Ending(
        "the plan is revised again and again without a tool's success",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "stopped",
        "idle_revisions",
        "test_a_plan_that_is_not_followed",
    ),
    Ending(
        "the plan is revised too often",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "stopped",
        "too_many_revisions",
        "test_a_plan_that_is_never_settled",
    ),
    Ending(
        "an answer does not have the form that it must have, and its repairs are used up",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "failed",
        "invalid_output",
        "test_an_answer_that_never_has_its_form",
    ),
    Ending(
        "the model or its provider refuses an answer that must have a form",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "failed",
        "refused_output",
        "test_a_refused_answer",
    ),
    Ending(
        "the hook says so",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "stopped",
        "should_stop_after_turn",
        "test_the_stop_hook",
    ),
    Ending(
        "the answer stands for a failed request",
        "`model`: hard_stop",
        "`stop_hook` → `finish`",
        "failed",
        "model_error",
        "test_a_failed_answer",
    ),
    Ending(
        "a request finds the run cancelled",
        "`model`: hard_stop",
        "`stop_hook` → `finish`",
        "cancelled",
        "aborted",
        "test_an_abort",
    ),
    Ending(
        "policy `cut`: the run is cancelled while a model is waited for",
        "`model`: stopped",
        "`model` → `finish`",
        "cancelled",
        "aborted",
        "test_a_cut_request",
    ),
    Ending(
        "policy `cut`: the run is cancelled while tools run",
        "`stop_hook`: stopped",
        "`stop_hook` → `finish`",
        "cancelled",
        "aborted",
        "test_a_cut_batch",
    ),
    Ending(
        "the context does not fit the model and nothing is left to summarise",
        "`compact`: stopped",
        "`compact` → `finish`",
        "failed",
        "context_overflow",
        "test_a_context_that_cannot_be_made_smaller",
    ),
    Ending(
        "a strict run gets an answer that breaks the protocol",
        "`model`: fault",
        "`model` → `fail`",
        "failed",
        "fault",
        "test_an_answer_against_the_protocol",
    ),
    Ending(
        "a hook, listener, converter or model raises",
        "any node: fault",
        "any node → `fail`",
        "failed",
        "fault",
        "test_a_fault",
    ),
    Ending(
        "a tool or an approval asks a person",
        "none",
        "none: the run stops inside `tool_batch`",
        "interrupted",
        "interrupt",
        "test_an_interrupt",
    ),
    Ending(
        "the caller asked to stop before or behind a node",
        "none",
        "none: the run stops between two nodes",
        "interrupted",
        "breakpoint",
        "test_a_breakpoint",
    ),
    Ending(
        "the run cannot begin",
        "`load`: refused",
        "`load` → end",
        "an exception",
        "names what is wrong",
        "test_a_refusal",
    ),
]

Make = Callable[..., Agent]


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes agents over one database from what their model answers."""
    made: list[Agent] = []

    def make(*script: Scripted, **parts: Any) -> Agent:
        database = tmp_path / "threads.db"
        made.append(Agent(ScriptedProvider(*script), database=database, thread="t", **parts))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


CALL = said("I look.", ("c1", "look", {}))


def using(tokens: int, **usage: Any) -> AIMessage:
    """An answer with a call that has used these tokens."""
    counts = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return CALL.model_copy(
        update={"usage_metadata": counts, "response_metadata": {"token_usage": usage}}
    )


def look() -> str:
    """Look."""
    return "seen"


def ending(result: RunResult) -> tuple[str, str]:
    return result.status, result.reason


@pytest.mark.anyio
async def test_an_answer_without_calls(agent: Make) -> None:
    made = agent(CALL, "done", tools=[look])
    assert ending(await made.prompt("hi")) == ("completed", "answered")


@pytest.mark.anyio
async def test_a_batch_that_terminates(agent: Make) -> None:
    async def stop(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(content="enough", terminate=True)

    tool = Tool(name="look", description="Look.", parameters={"type": "object"}, execute=stop)
    assert ending(await agent(CALL, tools=[tool]).prompt("hi")) == ("completed", "terminated")


@pytest.mark.anyio
async def test_the_turn_limit(agent: Make) -> None:
    made = agent(CALL, CALL, tools=[look], settings=Settings(limits=Limits(turns=2)))
    assert ending(await made.prompt("hi")) == ("limit", "max_turns")


@pytest.mark.anyio
async def test_the_time_limit(agent: Make) -> None:
    clock = VirtualClock()

    def slow() -> str:
        """Take three seconds."""
        clock.advance(3)
        return "done"

    call = said("", ("c1", "slow", {}))
    made = agent(call, call, tools=[slow], settings=Settings(limits=Limits(seconds=4)))
    made.graph.dependencies = replace(made.graph.dependencies, clock=clock)
    assert ending(await made.prompt("hi")) == ("limit", "max_seconds")


@pytest.mark.anyio
async def test_the_token_limit(agent: Make) -> None:
    settings = Settings(limits=Limits(tokens=20))
    made = agent(using(10), using(10), tools=[look], settings=settings)
    assert ending(await made.prompt("hi")) == ("limit", "max_tokens")


@pytest.mark.anyio
async def test_the_cost_limit(agent: Make) -> None:
    settings = Settings(limits=Limits(cost=0.5))
    made = agent(using(10, cost=0.2), using(10, cost=0.3), tools=[look], settings=settings)
    assert ending(await made.prompt("hi")) == ("limit", "max_cost")


@pytest.mark.anyio
async def test_an_empty_wallet(agent: Make) -> None:
    made = agent(using(10), tools=[look], settings=Settings(limits=Limits(calls=1)))
    assert ending(await made.prompt("hi")) == ("limit", "max_calls")


@pytest.mark.anyio
async def test_a_request_that_cannot_be_paid_for(agent: Make) -> None:
    made = agent(settings=Settings(limits=Limits(calls=3)))
    lease = made.graph.leases.claim("t")
    run = Run.start(lease=lease, dependencies=made.graph.dependencies)
    run.tree = Tree(thread="parent", run="r")
    await Purse(run.dependencies.log, run.tree, "parent").open(2, reserve=2)
    result = await OngoingRun(made.graph, run, {"messages": "hi"}, lease.release)
    assert ending(result) == ("limit", "max_calls")


@pytest.mark.anyio
async def test_the_token_budget(agent: Make) -> None:
    settings = Settings(limits=Limits(token_budget=10))
    made = agent(using(10), using(10), tools=[look], settings=settings)
    assert ending(await made.prompt("hi")) == ("limit", "token_budget")


@pytest.mark.anyio
async def test_calls_that_are_cut_again_and_again(agent: Make) -> None:
    cut = [said("", (id, "look", "{"), stop="length") for id in ("1", "2")]
    made = agent(*cut, tools=[look], settings=Settings(limits=Limits(length_rounds=1)))
    assert ending(await made.prompt("hi")) == ("failed", "output_limit")


@pytest.mark.anyio
async def test_a_repeated_action(agent: Make) -> None:
    settings = Settings(repetition="first_repeat")
    made = agent(using(10), using(10), tools=[look], settings=settings)
    assert ending(await made.prompt("hi")) == ("stopped", "repeated_action")


def planning(n: int) -> AIMessage:
    return said("", (f"p{n}", "plan", {"steps": [f"step {n}"]}))


@pytest.mark.anyio
async def test_a_plan_that_is_not_followed(agent: Make) -> None:
    settings = Settings(plan_idle_revisions=0)
    made = agent(planning(1), planning(2), tools=[plan_tool], settings=settings)
    assert ending(await made.prompt("hi")) == ("stopped", "idle_revisions")


@pytest.mark.anyio
async def test_a_plan_that_is_never_settled(agent: Make) -> None:
    settings = Settings(plan_revisions=0)
    script = (planning(1), using(10), planning(2))
    made = agent(*script, tools=[plan_tool, look], settings=settings)
    assert ending(await made.prompt("hi")) == ("stopped", "too_many_revisions")


@pytest.mark.anyio
async def test_an_answer_that_never_has_its_form(agent: Make) -> None:
    result = await agent("no", "no", "no", "no", settings=Settings(output=FORM)).prompt("hi")
    assert ending(result) == ("failed", "invalid_output")
    assert result.turns == 1 + FORM.repairs


@pytest.mark.anyio
async def test_a_refused_answer(agent: Make) -> None:
    refused = said("I will not", stop="content_filter")
    result = await agent(refused, settings=Settings(output=FORM)).prompt("hi")
    assert ending(result) == ("failed", "refused_output")
    assert result.error is not None and "content_filter" in result.error["message"]


@pytest.mark.anyio
async def test_the_stop_hook(agent: Make) -> None:
    made = agent(CALL, tools=[look], hooks=Hooks(should_stop_after_turn=lambda turn: True))
    assert ending(await made.prompt("hi")) == ("stopped", "should_stop_after_turn")


@pytest.mark.anyio
async def test_a_failed_answer(agent: Make) -> None:
    result = await agent(said("half", stop="error")).prompt("hi")
    assert ending(result) == ("failed", "model_error")
    assert result.error == {"kind": "server_error", "message": "it was error"}


@pytest.mark.anyio
async def test_an_abort(agent: Make) -> None:
    gate = Gate()
    made = agent([gate, *steps(said("", stop="aborted"))])
    run = made.prompt("hi")
    await gate.reached()
    made.abort()
    gate.open()
    assert ending(await run) == ("cancelled", "aborted")


@pytest.mark.anyio
async def test_a_cut_request(agent: Make) -> None:
    gate = Gate()
    made = agent([gate], settings=Settings(cancel_policy="cut"))
    run = made.prompt("hi")
    await gate.reached()
    made.abort()
    assert ending(await run) == ("cancelled", "aborted")
    assert [message.text for message in made.messages()] == ["hi"]


@pytest.mark.anyio
async def test_a_cut_batch(agent: Make) -> None:
    gate = Gate()

    async def wait() -> None:
        """Wait for ever."""
        await gate.wait()

    made = agent(said("", ("c1", "wait", {})), tools=[wait], settings=Settings(cancel_policy="cut"))
    run = made.prompt("hi")
    await gate.reached()
    made.abort()
    assert ending(await run) == ("cancelled", "aborted")
    assert [message.type for message in made.messages()] == ["human", "ai"]


@pytest.mark.anyio
async def test_an_answer_against_the_protocol(agent: Make) -> None:
    made = agent(said("", ("c1", "look", {}), stop="stop"), settings=Settings(protocol="strict"))
    result = await made.prompt("hi")
    assert ending(result) == ("failed", "fault")
    assert result.error == {
        "kind": "ProtocolError",
        "message": "the answer stopped for 'stop' with 1 tool calls",
    }


@pytest.mark.anyio
async def test_a_context_that_cannot_be_made_smaller(agent: Make) -> None:
    result = await agent(ContextOverflowError("too long")).prompt("hi")
    assert ending(result) == ("failed", "context_overflow")


@pytest.mark.anyio
async def test_a_fault(agent: Make) -> None:
    result = await agent(RuntimeError("no route")).prompt("hi")
    assert ending(result) == ("failed", "fault")
    assert result.error == {"kind": "RuntimeError", "message": "no route"}


@pytest.mark.anyio
async def test_an_interrupt(agent: Make) -> None:
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("sure?"))

    made = agent(said("", ("c1", "ask", {})), "done", tools=[ask])
    result = await made.prompt("hi")
    assert ending(result) == ("interrupted", "interrupt")
    assert [waiting["value"] for waiting in result.interrupts] == ["sure?"]
    assert ending(await made.resume("yes")) == ("completed", "answered")


@pytest.mark.anyio
async def test_a_breakpoint(agent: Make) -> None:
    made = agent("done")
    config: Any = {"configurable": {"thread_id": "t"}}
    events = made.graph.astream(
        {"messages": "hi"}, config, stream_mode="custom", interrupt_before=["model"]
    )
    last = [event async for event in events][-1]
    assert (last.status, last.reason) == ("interrupted", "breakpoint")
    assert ending(await made.resume()) == ("completed", "answered")


@pytest.mark.anyio
async def test_a_refusal(agent: Make) -> None:
    with pytest.raises(ContinuationError, match="'t' has no messages to continue from"):
        await agent().continue_()


def table() -> list[str]:
    """The endings as the document shows them."""
    rows = ["| when | decision | edge | status | reason | test |", "|---|---|---|---|---|---|"]
    return rows + [
        f"| {e.rule} | {e.decision} | {e.edge} | {e.status} | {e.reason} | `{e.test}` |"
        for e in ENDINGS
    ]


def test_the_document_shows_this_table() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    block = text.partition("<!-- endings -->\n")[2].partition("<!-- /endings -->")[0]
    assert block.strip().splitlines() == table()


@pytest.mark.parametrize("row", ENDINGS, ids=lambda row: row.reason)
def test_every_row_names_a_test_that_expects_its_ending(row: Ending) -> None:
    source = inspect.getsource(globals()[row.test])
    if row.status != "an exception":
        assert f'("{row.status}", "{row.reason}")' in source


if __name__ == "__main__":
    print("\n".join(table()))
