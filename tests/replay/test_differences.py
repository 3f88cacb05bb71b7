"""A trace that was changed, or a loop that does otherwise: the first step that differs is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Hooks, TraceFileError
from loopwright.nodes import stop_hook
from loopwright.replay import Replayed, areplay, replay
from loopwright.telemetry.trace import Trace
from tests.support.providers import ScriptedProvider, said

PAIR = said("I look.", ("c1", "look", {"at": "a"}), ("c2", "look", {"at": "b"}))
SINGLE = said("", ("c3", "look", {"at": "c"}))

Line = dict[str, Any]
RUN, TURN, PROMPT, ASK, FIRST, SECOND, TURN_2, ASK_2, THIRD, TURN_3, ASK_3, END = range(12)


async def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The trace of a run: a batch of two calls, one of one call, an answer."""
    path = tmp_path / "runs.jsonl"
    with Agent(ScriptedProvider(PAIR, SINGLE, "done"), [look], "Be kind.", trace=path) as agent:
        agent.run("hi")
    return path


def change(file: Path, how: Callable[[list[Line]], object]) -> None:
    """Write the trace anew with other lines."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["type"] for line in lines][ASK:] == [
        *("model", "tool", "tool", "turn", "model", "tool", "turn", "model", "end")
    ]
    how(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def only(done: list[Replayed]) -> Replayed:
    (one,) = done
    return one


def swap(lines: list[Line], a: int, b: int, *, renumber: bool = True) -> None:
    lines[a], lines[b] = lines[b], lines[a]
    if renumber:
        lines[a]["step"], lines[b]["step"] = a, b


def one_more(lines: list[Line]) -> None:
    lines.insert(END, {**lines[ASK_3], "step": END})
    lines[-1]["step"] = END + 1


def end_at(lines: list[Line], step: int) -> None:
    del lines[step:END]
    lines[-1]["step"] = step


CHANGES: dict[str, tuple[Callable[[list[Line]], object], int, str]] = {
    "other result": (
        lambda lines: lines[SECOND].update(content="seen elsewhere"),
        ASK_2,
        "message 4 of what was sent",
    ),
    "result that is an error": (
        lambda lines: lines[THIRD].update(is_error=True),
        ASK_3,
        "message 6 of what was sent",
    ),
    "other answer": (
        lambda lines: lines[ASK_3]["answer"]["data"].update(content="other"),
        END,
        "produced",
    ),
    "other prompt": (
        lambda lines: lines[PROMPT]["message"]["data"].update(content="ho"),
        ASK,
        "message 1 of what was sent",
    ),
    "other arguments": (
        lambda lines: lines[FIRST]["arguments"].update(at="z"),
        FIRST,
        "arguments.at: recorded 'z', now 'a'",
    ),
    "other limit": (
        lambda lines: lines[RUN]["settings"]["limits"].update(turns=2),
        TURN_3,
        "recorded turn 3, now end limit (max_turns)",
    ),
    "other system prompt": (
        lambda lines: lines[RUN].update(system_prompt="Be rude."),
        ASK,
        "system_prompt: recorded 'Be kind.', now 'Be rude.'",
    ),
    "fewer tools": (
        lambda lines: lines[RUN].update(tools=[]),
        ASK,
        "tools: recorded ['look'], now []",
    ),
    "other order of answers": (
        lambda lines: swap(lines, ASK, ASK_2),
        ASK,
        "request",
    ),
    "other order of calls": (
        lambda lines: swap(lines, SECOND, THIRD),
        FIRST,
        "tool look, content",
    ),
    "lines that changed places": (
        lambda lines: swap(lines, FIRST, SECOND, renumber=False),
        FIRST,
        "order: recorded step 5, now step 4",
    ),
    "a line that is missing": (lambda lines: lines.pop(SECOND), SECOND, "order"),
    "a step too many": (
        lambda lines: one_more(lines),
        END,
        "recorded model scripted (answer), now end completed (answered)",
    ),
    "other ending": (
        lambda lines: lines[END].update(status="failed", reason="fault"),
        END,
        "status: recorded 'failed', now 'completed'",
    ),
    "an end that comes earlier": (
        lambda lines: end_at(lines, TURN_2),
        TURN_2,
        "recorded end completed (answered), now turn 2",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_first_step_that_differs_is_told(name: str, file: Path) -> None:
    how, step, words = CHANGES[name]
    assert only(replay(file)).equal
    change(file, how)
    done = only(replay(file))
    assert done.equal is False and done.difference is not None
    assert done.difference.step == step, done.difference
    assert words in str(done.difference)


def test_other_status_and_reason_are_told(file: Path) -> None:
    change(file, lambda lines: lines[RUN]["settings"]["limits"].update(turns=1))
    done = only(replay(file))
    assert (done.recorded, done.now) == ("completed (answered)", "limit (max_turns)")


@pytest.mark.anyio
async def test_a_loop_that_does_otherwise_is_found_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = stop_hook._came_to
    monkeypatch.setattr(
        stop_hook, "_came_to", lambda state: "satisfied" if real(state) == "again" else real(state)
    )
    done = only(await areplay(file))
    assert done.difference is not None and done.difference.step == TURN_2
    assert done.now == "completed (terminated)"


@pytest.mark.anyio
async def test_what_was_cut_is_said(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "runs.jsonl", field_characters=300)
    script: list[Any] = [said("y" * 400, ("c1", "look", {"at": "x" * 500})), "done"]
    async with Agent(ScriptedProvider(*script), [look], observers=[trace]) as agent:
        await agent.prompt("hi")
    trace.close()
    done = only(await areplay(trace.path))
    assert done.equal
    assert "step 3: answer was cut when it was recorded" in done.notes[0]
    assert "step 4: arguments, content was cut" in done.notes[1]


def test_hooks_that_change_requests_are_named(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    hooks = Hooks(transform_context=lambda messages, signal: messages[-1:])
    with Agent(ScriptedProvider(PAIR, "done"), [look], hooks=hooks, trace=file) as agent:
        agent.run("hi")
    done = only(replay(file))
    assert done.equal and done.notes == (
        "requests are not compared: the run had transform_context",
    )


def test_a_run_goes_not_on_from_one_that_differs(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with Agent(ScriptedProvider("one", "two"), trace=file, thread="t") as agent:
        agent.run("a")
        agent.run("b")
    text = file.read_text().replace('"reason":"answered"', '"reason":"else"', 1)
    file.write_text(text)
    first, second = replay(file)
    assert first.equal is False
    assert second.equal is None and "not replayed as it was recorded" in str(second.skipped)


def behead(lines: list[Line]) -> None:
    del lines[0]
    for step, line in enumerate(lines):
        line["step"] = step


BROKEN: dict[str, Callable[[list[Line]], object]] = {
    "no beginning": lambda lines: behead(lines),
    "no settings": lambda lines: lines[RUN].update(settings=None),
    "settings that nobody has": lambda lines: lines[RUN]["settings"].update(colour="red"),
    "an answer that is no message": lambda lines: lines[ASK].update(answer={"type": "ai"}),
    "rules that nobody has": lambda lines: lines[RUN].update(wording={"colour": "red"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_trace_that_cannot_be_used_is_refused(name: str, file: Path) -> None:
    change(file, BROKEN[name])
    with pytest.raises(ValueError, match=r"cannot be replayed|colour"):
        replay(file)


def test_a_run_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(TraceFileError, match="it has no run 'zz'"):
        replay(file, "zz")
