"""What a turn costs does not grow with the transcript: work is counted, not timed."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages import AnyMessage

import loopwright
from loopwright.events import AnyEvent
from tests.ledgers import answer, result, user
from tests.support.graphs import on, rig
from tests.support.providers import said

PACKAGE = str(Path(loopwright.__file__).parent)
TURNS = 5


class Work:
    """Counts the steps of the package's own code: calls, and each turn of its inner loops."""

    def __init__(self) -> None:
        self.done = 0
        self.at_turn: dict[int, int] = {}

    def count(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.done += 1

    def listen(self, event: AnyEvent) -> None:
        if event.type == "turn_start":
            self.at_turn[event.turn] = self.done

    def of_one_turn(self) -> int:
        """The work between the starts of two late turns."""
        return self.at_turn[TURNS] - self.at_turn[TURNS - 1]


def older(turns: int) -> list[AnyMessage]:
    messages: list[AnyMessage] = []
    for n in range(turns):
        messages += [user(f"u{n}"), answer(f"a{n}", f"old{n}"), result(f"r{n}", f"old{n}")]
    return messages


def t(n: int) -> int:
    """Give the number back."""
    return n


async def work_of_a_turn(turns_before: int) -> int:
    calls = [said("", (f"c{n}", "t", {"n": n}), (f"d{n}", "t", {"n": -n})) for n in range(TURNS)]
    made, work = rig(*calls, "done", tools=[t]), Work()
    made.graph.dependencies.listeners.add(work.listen)
    sys.setprofile(work.count)
    try:
        await made.run({"messages": [*older(turns_before), user("now")]})
    finally:
        sys.setprofile(None)
    stored = (await made.graph.aget_state(on("t"))).values["messages"]
    assert len(stored) == 3 * turns_before + 1 + 3 * TURNS + 1
    return work.of_one_turn()


@pytest.mark.anyio
async def test_a_turn_behind_a_thousand_messages_is_as_much_work_as_behind_ten() -> None:
    await work_of_a_turn(1)
    short, long = await work_of_a_turn(3), await work_of_a_turn(333)
    assert short > 50
    assert abs(long - short) <= short // 10
