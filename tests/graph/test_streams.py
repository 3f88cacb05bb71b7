"""Events in the shape of the stream that a caller asked for, whoever tells them."""

from typing import Any

import pytest

from loopwright.events import AgentEnd, AgentStart, Event, TurnStart
from loopwright.graph.streams import Framing
from tests.support.graphs import on, rig
from tests.support.providers import said
from tests.support.states import scene

TURN = TurnStart(turn=1)


@pytest.mark.parametrize(
    ("mode", "options", "frames"),
    [
        ("custom", {}, [TURN]),
        ("custom", {"subgraphs": True}, [((), TURN)]),
        (["custom"], {}, [("custom", TURN)]),
        (["values", "custom"], {"subgraphs": True}, [((), "custom", TURN)]),
        ("values", {}, []),
        (["values", "updates"], {}, []),
        ("custom", {"version": "v2"}, [{"type": "custom", "ns": (), "data": TURN}]),
        (["custom"], {"version": "v2"}, [{"type": "custom", "ns": (), "data": TURN}]),
    ],
)
def test_an_event_is_framed_as_the_caller_asked(mode: Any, options: Any, frames: Any) -> None:
    assert list(Framing.of(mode, options).frames([TURN])) == frames


@pytest.mark.anyio
async def test_what_is_told_between_steps_is_collected() -> None:
    run = scene().run
    told = Framing.of("custom", {}).collect(run)
    await run.emit(TURN)
    assert [event.type for event in told] == ["turn_start"]


FORMS: list[dict[str, Any]] = [
    {"stream_mode": "custom"},
    {"stream_mode": ["custom"]},
    {"stream_mode": ["values", "custom"], "subgraphs": True},
    {"stream_mode": "custom", "subgraphs": True},
    {"stream_mode": "custom", "version": "v2"},
]


def event_of(frame: Any) -> Any:
    if isinstance(frame, dict):
        return frame["data"]
    return frame[-1] if isinstance(frame, tuple) else frame


@pytest.mark.anyio
@pytest.mark.parametrize("form", FORMS, ids=str)
async def test_the_events_of_the_entrance_look_like_those_of_the_nodes(form: Any) -> None:
    made = rig(said("", ("c1", "t", {})), "done")
    nodes = [name for name in made.graph.nodes if name != "__start__"]
    first = [
        frame
        async for frame in made.graph.astream(
            {"messages": "hi"}, on("t"), interrupt_before=nodes[2:3], **form
        )
    ]
    second = [frame async for frame in made.graph.astream(None, on("t"), **form)]
    ours = [frame for frame in first + second if isinstance(event_of(frame), Event)]
    shapes = {_shape(frame) for frame in ours}
    assert len(shapes) == 1
    types = [type(event_of(frame)) for frame in ours]
    assert types.count(AgentStart) == types.count(AgentEnd) == 2


def _shape(frame: Any) -> Any:
    if isinstance(frame, dict):
        return tuple((key, value) for key, value in frame.items() if key != "data")
    return frame[:-1] if isinstance(frame, tuple) else "event"
