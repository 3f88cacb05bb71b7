"""Every recorded scenario of Pi's agent core passes, and the traces notice when a rule is changed.

How a scenario is played is in `pi/`; what must come out of it stands in the traces.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.pi.__main__ import COPIES, ROOT, cases, tell
from tests.conformance.pi.deviations import Deviation, deviations, stale
from tests.conformance.pi.mutants import MUTANTS, Mutant, applied, edit
from tests.conformance.pi.playing import fault
from tests.conformance.pi.variants import VARIANTS, Witness

MEMORY, _, INTERRUPTED, _ = VARIANTS
Case = dict[str, Any]


def run(module: str, *arguments: object) -> tuple[int, list[str]]:
    """Exit status and lines of a module of the runner in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", f"tests.conformance.{module}"]
    ended = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, encoding="utf-8"
    )
    assert not ended.stderr
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.timeout(300)
def test_every_scenario_passes_on_both_checkpointers_straight_and_interrupted() -> None:
    assert run("pi") == (
        0,
        [
            "memory: 117 played, 117 passed",
            "sqlite: 117 played, 117 passed",
            "memory, interrupted: 112 played, 112 passed; raw loops have no checkpointer",
            "sqlite, interrupted: 112 played, 112 passed; raw loops have no checkpointer",
            "117 cases, 117 passed",
        ],
    )


# ---- the traces notice changed rules


@pytest.fixture(scope="module")
def told_of_mutants() -> dict[str, str]:
    """What the scenarios make of each mutant; they are all played in one other process."""
    _, lines = run("pi.mutants")
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_changed_rule_is_noticed(mutant: Mutant, told_of_mutants: dict[str, str]) -> None:
    assert told_of_mutants[mutant.name] == f"noticed by {', '.join(mutant.noticed_by)}"


def test_a_mutant_of_code_that_has_changed_is_an_error_and_leaves_it_as_it_is() -> None:
    lost = Mutant("lost", "unfinished:kind_of", edit("no such code", ""), ("plain-answer",))
    with pytest.raises(LookupError, match="not exactly one 'no such code'"), applied(lost):
        pass
    assert fault(golden("plain-answer"), MEMORY) is None


# ---- the runner notices what is wrong with a trace


def golden(name: str, change: Callable[[Case], object] = lambda case: None) -> Case:
    """A recorded case with a changed golden or scenario."""
    (case,) = cases(COPIES, [name])
    change(case)
    return case


WRONG: list[tuple[str, str, Callable[[Case], object]]] = [
    ("events: [0] want", "one-tool", lambda c: c["golden"]["events"][0].update(extra=1)),
    ("events: length want 24 got 25", "one-tool", lambda c: c["golden"]["events"].pop()),
    ("requests: [0]", "one-tool", lambda c: c["golden"]["requests"][0].update(model="m2")),
    ("toolRuns: [0]", "one-tool", lambda c: c["golden"]["toolRuns"][0].update(aborted=True)),
    ("hooks: [1]", "one-tool", lambda c: c["golden"]["hooks"][1].update(contextMessages=3)),
    ("steps: [0]", "one-tool", lambda c: c["golden"]["steps"][0].update(ok=False)),
    ("transcript: length", "one-tool", lambda c: c["golden"]["transcript"].pop()),
    ("contextMessages: length", "raw-continue", lambda c: c["golden"]["contextMessages"].pop()),
    ("final: want", "one-tool", lambda c: c["golden"]["final"].update(leftSteering=["s"])),
    ("log: [4] want", "one-tool", lambda c: c["golden"]["log"].remove("poll:steering:0")),
    ("tries: length", "one-tool", lambda c: c["golden"]["log"].append("tryReset:threw:x")),
    ("scenario: unknown key 'nap'", "one-tool", lambda c: c["scenario"].update(nap=1)),
    (
        "scenario: unknown step 'nap'",
        "one-tool",
        lambda c: c["scenario"]["steps"].append({"do": "nap"}),
    ),
    (
        "scenario: unknown key 'ask' in beforeToolCall",
        "one-tool",
        lambda c: c["scenario"]["hooks"]["beforeToolCall"].update(ask=True),
    ),
    ("played: KeyError", "one-tool", lambda c: c["scenario"].pop("steps")),
]


@pytest.mark.parametrize(("told", "name", "change"), WRONG)
def test_a_trace_that_differs_is_a_failure(
    told: str, name: str, change: Callable[[Case], object]
) -> None:
    wrong = fault(golden(name, change), MEMORY)
    assert wrong is not None
    assert wrong.startswith(told)


def test_true_is_not_one() -> None:
    case = golden("terminate-single", lambda c: c["golden"]["events"][11].update(terminate=1))
    assert str(fault(case, MEMORY)).startswith("events: [11]")


@pytest.mark.parametrize("variant", [MEMORY, INTERRUPTED], ids=lambda variant: variant.name)
def test_events_that_do_not_come_from_the_graph_are_a_failure(
    variant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def see_nothing(*given: Any, **details: Any) -> None:
        """Stands for a loop that is run without the graph."""

    monkeypatch.setattr(Witness, "on_chain_start", see_nothing)
    wrong = fault(golden("one-tool"), variant)
    assert wrong == "graph: 2 requests, but 0 visits of the node `model`"


# ---- deviations


def row(*scenarios: str, test: str = "tests/conformance/test_pi_runner.py::row") -> Deviation:
    """A deviation in these scenarios."""
    return Deviation(scenarios, "a rule", "a harm", "what we do", test)


def test_a_failure_that_is_a_deviation_does_not_pass_but_is_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = {"name": "odd", "scenario": {}}
    results: list[Any] = [(case, variant, None) for variant in VARIANTS[1:]]
    results.append((case, MEMORY, "events: [0]\nwant"))
    assert tell([case], results, [row("odd")]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "FAIL odd [memory] events: [0]\\nwant (deviation: a rule)"
    assert last == "1 cases, 0 passed"
    assert tell([case], results, []) == 1
    assert tell([case], results[:3], [row("odd")]) == 1
    assert "STALE odd: it passes, but deviates by rule 'a rule'" in capsys.readouterr().out


def test_a_deviation_needs_a_test_that_is_there() -> None:
    there = row("odd")
    assert stale([there], {"odd"}, {"odd"}, ROOT) == []
    for test in ("tests/none.py::test", "tests/conformance/test_pi_runner.py::test_none"):
        assert stale([row("odd", test=test)], {"odd"}, {"odd"}, ROOT) == [
            f"STALE 'a rule': no test {test}"
        ]


def test_the_rows_of_the_file_speak_of_recorded_scenarios() -> None:
    recorded = {file.stem for file in COPIES.glob("*.json")}
    assert len(recorded) == 117
    assert {name for row in deviations() for name in row.scenarios} <= recorded


def test_rows_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.toml"
    fields = {"rule": "a rule", "harm": "a harm", "ours": "what we do", "test": row().test}
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    file.write_text("\n".join(["[[deviation]]", 'scenarios = ["odd"]', *lines]))
    assert deviations(file) == [row("odd")]


def test_a_name_without_a_case_is_a_failure() -> None:
    status, lines = run("pi", COPIES, "plain-answer", "none")
    assert (status, lines[0]) == (1, "FAIL none [memory] scenario: there is none")
    assert lines[-1] == "2 cases, 1 passed"


def test_playing_nothing_is_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell([], [], []) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 cases, 0 passed"
