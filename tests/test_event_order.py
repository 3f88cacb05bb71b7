"""The order of a run's events: drawn from real runs, compared with the drawings in the document."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest

from loopwright import Agent
from loopwright.events import AnyEvent
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.graphs import told

DESIGN = Path(__file__).parent.parent / "docs" / "design.md"
OPENS = ("agent_start", "turn_start", "message_start")
CLOSES = ("agent_end", "turn_end", "message_end")


def drawn(events: Iterable[AnyEvent]) -> list[str]:
    """The events as a tree; equal ones in a row are one line."""
    lines: list[str] = []
    depth = 0
    for words, same in groupby(told(events)):
        name, _, about = words.partition(" ")
        depth -= name in CLOSES
        lines.append(f"{'    ' * depth + name:<38}{about}".rstrip())
        depth += name in OPENS
        if (count := len(list(same))) > 1:
            lines[-1] += f" (here {count} times)"
    return lines


async def plain() -> list[AnyEvent]:
    """A run without tools."""
    async with Agent(ScriptedModel(["Hello, you."])) as agent:
        return [event async for event in agent.stream("hi")]


async def tools() -> list[AnyEvent]:
    """A run with two calls in one answer, of which the second is done first."""
    second_is_done = Gate()

    async def slow() -> str:
        """Take long."""
        await second_is_done.wait()
        return "slow"

    async def fast() -> str:
        """Take no time."""
        return "fast"

    def listen(event: AnyEvent) -> None:
        if event.type == "tool_execution_end" and event.tool_call_id == "c2":
            second_is_done.open()

    calls = Response(calls=[("c1", "slow", {}), ("c2", "fast", {})])
    async with Agent(ScriptedModel([calls, "Done."]), [slow, fast]) as agent:
        agent.subscribe(listen)
        return [event async for event in agent.stream("hi")]


def shown(name: str) -> list[str]:
    """The drawing in the document, without its fence."""
    text = DESIGN.read_text(encoding="utf-8")
    block = text.partition(f"<!-- events: {name} -->\n")[2].partition(f"<!-- /events: {name}")[0]
    return block.strip().splitlines()[1:-1]


@pytest.mark.anyio
async def test_the_drawing_without_tools_is_of_a_real_run() -> None:
    assert shown("plain") == drawn(await plain())


@pytest.mark.anyio
async def test_the_drawing_with_tools_is_of_a_real_run() -> None:
    assert shown("tools") == drawn(await tools())


@pytest.mark.anyio
async def test_events_without_tools_come_in_this_order() -> None:
    assert told(await plain()) == [
        "agent_start",
        "turn_start",
        "message_start user",
        "message_end user",
        "message_start assistant",
        "message_update text_start",
        "message_update text_delta",
        "message_update text_delta",
        "message_update text_end",
        "message_end assistant",
        "turn_end",
        "agent_end",
    ]


@pytest.mark.anyio
async def test_events_with_tools_come_in_this_order() -> None:
    events = [line for line in told(await tools()) if not line.startswith("message_update")]
    assert events == [
        "agent_start",
        "turn_start",
        "message_start user",
        "message_end user",
        "message_start assistant",
        "message_end assistant",
        "tool_execution_start c1",
        "tool_execution_start c2",
        "tool_execution_end c2",
        "tool_execution_end c1",
        "message_start tool",
        "message_end tool",
        "message_start tool",
        "message_end tool",
        "turn_end",
        "turn_start",
        "message_start assistant",
        "message_end assistant",
        "turn_end",
        "agent_end",
    ]
