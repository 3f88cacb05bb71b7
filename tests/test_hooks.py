"""Hooks may be sync or async, get lists of their own, and see what their place knows."""

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from loopwright.hooks import (
    AfterToolCall,
    BeforeToolCall,
    Hooks,
    NextTurn,
    keep_model_roles,
    settled,
)
from tests.support.graphs import outline, rig
from tests.support.providers import said


@pytest.mark.anyio
async def test_a_value_and_a_coroutine_s_value_are_the_same() -> None:
    async def later() -> int:
        return 3

    now: int = await settled(3)
    then: int = await settled(later())
    assert (now, then) == (3, 3)


def test_the_default_conversion_keeps_what_a_model_understands() -> None:
    messages: list[Any] = [
        HumanMessage("a"),
        ChatMessage(content="note", role="note"),
        SystemMessage("b"),
        AIMessage("c"),
        ToolMessage("d", tool_call_id="c1"),
    ]
    assert [m.type for m in keep_model_roles(messages)] == ["human", "ai", "tool"]


def look() -> str:
    """Look."""
    return "seen"


def counting(order: list[str], answers: dict[str, Any], *, wait: bool) -> Hooks:
    """Every hook writes down that it was called; async ones if `wait`."""

    def hook(name: str) -> Any:
        def sync(*given: Any) -> Any:
            order.append(name)
            return answers.get(
                name, given[0] if name.startswith(("transform", "convert")) else None
            )

        async def later(*given: Any) -> Any:
            return sync(*given)

        return later if wait else sync

    return Hooks(**{name: hook(name) for name in Hooks.__dataclass_fields__})


@pytest.mark.anyio
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_every_hook_is_called_in_its_place(wait: bool) -> None:
    order: list[str] = []
    made = rig(
        said("", ("c1", "look", {})), "done", tools=[look], hooks=counting(order, {}, wait=wait)
    )
    await made.run({"messages": "hi"})
    request = ["transform_context", "convert_to_llm", "get_api_key"]
    assert order == [
        *request,
        "before_tool_call",
        "after_tool_call",
        "should_stop_after_turn",
        "prepare_next_turn",
        *request,
        "should_stop_after_turn",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_answers_count_whether_they_come_at_once_or_later(wait: bool) -> None:
    answers = {
        "before_tool_call": BeforeToolCall(block=True, reason="no"),
        "prepare_next_turn": NextTurn(system_prompt="new"),
        "get_api_key": "key",
        "after_tool_call": AfterToolCall(content="never used: nothing ran"),
    }
    hooks = counting([], answers, wait=wait)
    made = rig(said("", ("c1", "look", {})), "done", tools=[look], hooks=hooks)
    await made.run({"messages": "hi"})
    assert outline(await made.ledger())[2] == "c1: no"
    second = made.provider.requests[-1]
    assert (second.system_prompt, second.api_key) == ("new", "key")


@pytest.mark.anyio
async def test_changing_the_lists_that_hooks_get_changes_nothing_stored() -> None:
    def spoil(messages: list[AnyMessage], *rest: Any) -> list[AnyMessage]:
        kept = list(messages)
        messages.clear()
        return kept

    def spoil_turn(turn: Any) -> None:
        turn.messages.clear()
        turn.new_messages.clear()
        turn.tool_results.clear()

    def spoil_call(call: Any) -> None:
        call.messages.clear()

    hooks = Hooks(
        transform_context=spoil,
        convert_to_llm=spoil,
        before_tool_call=spoil_call,
        after_tool_call=spoil_call,
        should_stop_after_turn=spoil_turn,
        prepare_next_turn=spoil_turn,
    )
    made = rig(said("", ("c1", "look", {})), "done", tools=[look], hooks=hooks)
    ended = await made.run({"messages": "hi"})
    assert ended.status == "completed"
    assert len(await made.ledger()) == len(ended.messages) == 4
    assert len(made.provider.requests[-1].messages) == 3
