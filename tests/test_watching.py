"""Runs that repeat themselves or use up their tokens: what the model is told, and how they end."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from loopwright import Limits, Settings, Tool, ToolContext, ToolResult
from loopwright.events import Budget, Repetition
from loopwright.hooks import Hooks, NextTurn
from loopwright.presets import pi
from loopwright.state.notes import rule_of
from tests.support.graphs import Rig, outcome, rig, told
from tests.support.providers import said

HI: Any = {"messages": "hi"}
NOTE = "[System note] "


class Counted:
    """A tool and how often its body ran."""

    def __init__(self, *results: str, name: str = "look", **about: Any) -> None:
        self.runs = 0

        async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
            self.runs += 1
            return ToolResult(content=results[min(self.runs, len(results)) - 1])

        self.tool = Tool(
            name=name, description=name, parameters={"type": "object"}, execute=execute, **about
        )


def looks(turns: int, each: int = 1) -> list[AIMessage]:
    """Messages that call the same thing, so many times each."""
    return [said("", *((f"c{t}-{n}", "look", {}) for n in range(each))) for t in range(turns)]


def again(turns: int, tool: Counted, *, each: int = 1, **settings: Any) -> Rig:
    return rig(*looks(turns, each), "done", tools=[tool.tool], settings=Settings(**settings))


def results(messages: Any) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.anyio
async def test_the_model_is_told_once_then_the_run_ends_and_every_call_has_its_result() -> None:
    look = Counted("none")
    made = again(9, look)
    events = await made.events(HI)
    result = outcome(events)
    assert (result.status, result.reason, result.turns) == ("stopped", "repeated_action", 5)
    assert look.runs == 4
    warnings = [event for event in events if isinstance(event, Repetition)]
    assert [(w.circle, w.tool_names, w.count) for w in warnings] == [("same_call", ["look"], 3)]
    notes = [m for m in made.provider.requests[3].messages if str(m.content).startswith(NOTE)]
    assert len(notes) == 1 and isinstance(notes[0], HumanMessage)
    assert made.provider.requests[2].messages == made.provider.requests[3].messages[:-3]
    last = results(await made.ledger())[-1]
    assert (last.status, last.artifact) == ("error", {"not_executed": "repeated_action"})
    assert last.text.startswith("Not executed")


@pytest.mark.anyio
async def test_the_note_is_a_row_of_its_own_and_no_user_s_message() -> None:
    made = again(3, Counted("none"))
    await made.run(HI)
    rows = [m for m in await made.ledger() if isinstance(m, SystemMessage)]
    assert [rule_of(row) for row in rows] == ["repeated_action"]
    assert sum(m.type == "human" for m in await made.ledger()) == 1


@pytest.mark.anyio
async def test_a_warning_is_told_between_two_turns() -> None:
    events = told(await again(3, Counted("none")).events(HI))
    at = events.index("repetition")
    assert events[at - 1].startswith("turn_end")
    assert events[at + 1 : at + 4] == ["turn_start", "message_start system", "message_end system"]


@pytest.mark.anyio
async def test_a_tool_that_may_be_repeated_polls_as_long_as_it_likes() -> None:
    named, saying_so = Counted("pending"), Counted("pending", repeatable=True)
    for made in (again(30, named, repeatable=("look",)), again(30, saying_so)):
        assert (await made.run(HI)).status == "completed"
    assert (named.runs, saying_so.runs) == (30, 30)


@pytest.mark.anyio
async def test_a_tool_whose_results_change_is_never_ended() -> None:
    look = Counted(*(f"{n} of 80" for n in range(80)))
    made = again(80, look)
    events = await made.events(HI)
    assert (outcome(events).status, look.runs) == ("completed", 80)
    assert [e.circle for e in events if isinstance(e, Repetition)] == ["long_run"]


@pytest.mark.anyio
async def test_calls_of_one_message_are_run_in_order_if_their_results_decide() -> None:
    look = Counted("none")
    result = await again(1, look, each=7).run(HI)
    assert (result.reason, look.runs) == ("repeated_action", 4)
    dice = Counted(*"3164253")
    assert (await again(1, dice, each=7).run(HI)).status == "completed"
    assert dice.runs == 7


@pytest.mark.anyio
async def test_the_first_repeat_ends_the_run_and_what_stands_before_it_has_run() -> None:
    look, other = Counted("none"), Counted("else", name="other")
    batch = said(
        "", ("c1", "look", {}), ("c2", "other", {}), ("c3", "look", {}), ("c4", "other", {})
    )
    made = rig(batch, tools=[look.tool, other.tool], settings=Settings(repetition="first_repeat"))
    result = await made.run(HI)
    assert (result.reason, look.runs, other.runs) == ("repeated_action", 1, 1)
    assert [m.status for m in results(await made.ledger())] == ["success"] * 2 + ["error"] * 2


@pytest.mark.anyio
async def test_the_calls_of_an_earlier_run_are_no_repetition() -> None:
    look = Counted("none")
    (call,) = looks(1)
    settings = Settings(repetition="first_repeat")
    script = (call, "done", call, "done", call, "done")
    made = rig(*script, tools=[look.tool], settings=settings)
    for _ in range(3):
        assert (await made.run(HI)).status == "completed"
    assert look.runs == 3


@pytest.mark.anyio
async def test_a_run_that_is_carried_on_remembers_its_calls() -> None:
    look, saver = Counted("none"), InMemorySaver()
    made = again(9, look)
    made = rig(*looks(9), "done", tools=[look.tool], checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    await made.graph.ainvoke(HI, config, interrupt_before=["stop_hook"])
    for _ in range(3):
        await made.graph.ainvoke(None, config, interrupt_before=["stop_hook"])
    answer = await made.graph.ainvoke(None, config)
    assert (answer["result"]["reason"], look.runs) == ("repeated_action", 4)
    notes = [m for m in answer["messages"] if isinstance(m, SystemMessage)]
    assert len(notes) == 1


@pytest.mark.anyio
async def test_detection_can_be_switched_off_and_pi_has_none() -> None:
    look = Counted("none")
    assert (await again(30, look, repetition="off").run(HI)).status == "completed"
    assert pi.settings_of(None).repetition == "off"


# ---- the token budget


def costly(tokens: int, *calls: tuple[str, str, Any], text: str = "") -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return said(text, *calls).model_copy(update={"usage_metadata": usage})


def budgeted(*script: Any, budget: int = 100, **parts: Any) -> tuple[Rig, Counted]:
    look = Counted("none")
    settings = Settings(limits=Limits(token_budget=budget, **parts.pop("limits", {})))
    return rig(*script, tools=[look.tool], settings=settings, **parts), look


@pytest.mark.anyio
async def test_at_its_token_budget_a_run_is_told_once_to_conclude_without_tools() -> None:
    made, look = budgeted(costly(100, ("c1", "look", {})), "That is it.")
    events = await made.events(HI)
    assert outcome(events).status == "completed"
    first, second = made.provider.requests
    assert (len(first.tools), len(second.tools)) == (1, 0)
    assert str(second.messages[-1].content).startswith(f"{NOTE}The token budget")
    assert [e.name for e in events if isinstance(e, Budget)] == ["token_budget"]
    assert look.runs == 1


@pytest.mark.anyio
async def test_below_its_budget_a_run_is_told_nothing() -> None:
    made, _ = budgeted(costly(99, ("c1", "look", {})), "That is it.")
    await made.run(HI)
    assert len(made.provider.requests[1].tools) == 1
    assert not [m for m in await made.ledger() if isinstance(m, SystemMessage)]


@pytest.mark.anyio
async def test_a_model_that_calls_a_tool_all_the_same_ends_the_run() -> None:
    made, look = budgeted(
        costly(100, ("c1", "look", {})), costly(5, ("c2", "look", {"x": 1}), ("c3", "look", {}))
    )
    result = await made.run(HI)
    assert (result.status, result.reason, look.runs) == ("limit", "token_budget", 1)
    assert [m.artifact for m in results(await made.ledger())[1:]] == [
        {"not_executed": "token_budget"}
    ] * 2


@pytest.mark.anyio
async def test_a_hook_cannot_bring_the_tools_back() -> None:
    hooks = Hooks(prepare_next_turn=lambda turn: NextTurn(tools=["look"]))
    made, look = budgeted(
        costly(100, ("c1", "look", {})), costly(5, ("c2", "look", {"x": 1})), hooks=hooks
    )
    assert (await made.run(HI)).reason == "token_budget"
    assert look.runs == 1


@pytest.mark.anyio
async def test_the_next_run_has_its_tools_and_its_tokens_again() -> None:
    made, _ = budgeted(
        costly(100, ("c1", "look", {})), "one", costly(50, ("c2", "look", {})), "two"
    )
    await made.run(HI)
    assert (await made.run(HI)).status == "completed"
    assert [len(r.tools) for r in made.provider.requests] == [1, 0, 1, 1]


@pytest.mark.anyio
async def test_the_turn_limit_is_looked_at_before_the_tokens() -> None:
    made, _ = budgeted(costly(100, ("c1", "look", {})), limits={"turns": 1})
    assert (await made.run(HI)).reason == "max_turns"


@pytest.mark.anyio
async def test_a_budget_of_nothing_is_used_up_when_the_run_begins() -> None:
    made, _ = budgeted("What I know.", budget=0)
    await made.run(HI)
    assert made.provider.requests[0].tools == ()
