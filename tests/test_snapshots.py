"""A thread's state as JSON: whole at every step of a run, and gone on from in another database."""

import json
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, tool
from loopwright.errors import InputError, ThreadExistsError, UnknownThreadError
from loopwright.state.state_json import from_json, to_json
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.support.graphs import outline

SCRIPT: list[Response | str] = [
    Response(text="I write.", calls=[("c1", "write", {"text": "a"}), ("c2", "read", {})]),
    Response(text="Once more.", calls=[("c3", "write", {"text": "b"})]),
    "done",
]
WHOLE = [
    "user: go",
    "assistant: I write. [c1 c2]",
    "c1: written a",
    "c2: read",
    "assistant: Once more. [c3]",
    "c3: written b",
    "assistant: done",
]


class Desk:
    """What the tools do to the world."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def tools(self) -> list[Any]:
        @tool(effects="unsafe")
        def write(text: str) -> str:
            """Write something."""
            self.written.append(text)
            return f"written {text}"

        @tool(effects="none")
        def read() -> str:
            """Read."""
            return "read"

        return [write, read]


def agent(path: Path, desk: Desk, script: Any) -> Agent:
    return Agent(ScriptedModel(script), desk.tools(), database=path, thread="t")


def test_at_every_step_the_state_is_json_that_another_database_goes_on_from(tmp_path: Path) -> None:
    desk = Desk()
    with agent(tmp_path / "from.db", desk, SCRIPT) as source:
        source.run("go")
        taken = [(m, source.snapshot(at=m)) for m in source.history()]
    assert {m.next for m, _ in taken} >= {"load", "queue_drain", "model", "tool_batch", None}
    for number, (moment, snapshot) in enumerate(taken):
        text = json.dumps(snapshot, allow_nan=False)
        assert to_json(from_json(json.loads(text))) == snapshot
        elsewhere, asked = (
            Desk(),
            sum(m.type == "ai" for m in from_json(snapshot).values["messages"]),
        )
        with agent(tmp_path / f"{number}.db", elsewhere, SCRIPT[asked:]) as target:
            thread = target.restore(json.loads(text), name="mine")
            if moment.next is not None:
                assert target.graph.invoke(None, {"configurable": {"thread_id": thread}})
            assert outline(target.messages(thread)) == WHOLE[: len(WHOLE) if moment.next else None]
            assert not faults(target.messages(thread))
            done = ["a"] * (asked > 0) + ["b"] * (asked > 1)
            # What had been journaled by the end is known at each moment, and not done again.
            assert done + elsewhere.written == ["a", "b"]


def test_a_finished_thread_takes_the_next_prompt_elsewhere(tmp_path: Path) -> None:
    with agent(tmp_path / "from.db", Desk(), ["one"]) as source:
        source.run("first")
        snapshot = source.snapshot()
    with agent(tmp_path / "to.db", Desk(), ["two"]) as target:
        thread = target.restore(snapshot)
        target.run("second", thread=thread)
        assert outline(target.messages(thread)) == [
            "user: first",
            "assistant: one",
            "user: second",
            "assistant: two",
        ]
        with pytest.raises(ThreadExistsError):
            target.restore(snapshot, name=thread)
        with pytest.raises(UnknownThreadError):
            target.snapshot("none")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "no snapshot"),
        ({"version": 2}, "version '2'"),
        ({"next": "elsewhere"}, "a step that no run has"),
        ({"thread": 1}, "names no thread"),
        ({"state": {}}, "not that of a thread"),
        ({"state": {"messages": [], "more": 1}}, "not that of a thread"),
        ({"state": {"messages": [{"type": "human", "data": 1}]}}, "has no data"),
        ({"state": {"messages": [{"type": "constructor", "data": {}}]}}, "no message"),
        ({"state": {"messages": [], "view": {"head": 3}}}, "'view' cannot be taken"),
        ({"state": {"messages": [], "run": 5}}, "'run' is not what a run stores"),
        ({"state": {"messages": [], "run": {"id": "r"}}}, "'run' is not what a run stores"),
        ({"state": {"messages": [], "decision": {"kind": "leave"}}}, "'decision' is not what"),
        ({"state": {"messages": [], "settings": {"limits": [1]}}}, "'settings' is not what"),
        ({"state": {"messages": [], "settings": {"model": "m", "more": 1}}}, "'settings' is not"),
        ({"state": {"messages": [], "plan": {"steps": 1}}}, "'plan' is not what a run stores"),
        ({"journal": [1]}, "journal is none"),
        ({"more": 1}, "no snapshot"),
    ],
)
def test_what_is_no_snapshot_is_refused_and_stores_nothing(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with agent(tmp_path / "t.db", Desk(), ["one"]) as made:
        made.run("first")
        snapshot = {**made.snapshot(), **change}
        with pytest.raises(InputError, match=said):
            made.restore(snapshot, name="new")
        assert [info.id for info in made.threads()] == ["t"]
