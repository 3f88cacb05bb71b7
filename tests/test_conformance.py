"""The conformance runners: they pass on the copies in `data`, and fail where something is wrong.

What the vectors and cases say stands in their files; their drivers are in `conformance/`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.running import run as run_cases

ROOT = Path(__file__).parent.parent
VECTORS = ROOT / "tests" / "data" / "vectors"
CASES = ROOT / "tests" / "data" / "cases" / "reports.jsonl"


def run(module: str, *arguments: object, before: str = "") -> tuple[int, list[str]]:
    """Exit status and lines of a runner in a process of its own; `before` is run first."""
    name = f"tests.conformance.{module}"
    script = f"import runpy, sys\n{before}\nrunpy.run_module({name!r}, run_name='__main__')"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, encoding="utf-8")
    assert not ended.stderr
    return ended.returncode, ended.stdout.splitlines()


def failed(lines: list[str]) -> set[str]:
    """The ids of the cases that failed."""
    return {line.split(": ")[0].removeprefix("FAIL ") for line in lines[:-1]}


@pytest.mark.parametrize(("module", "count"), [("vectors", 196), ("reports", 32)])
def test_all_cases_pass(module: str, count: int) -> None:
    assert run(module) == (0, [f"{count} cases, {count} passed"])


NO_REPAIR = """
import loopwright.nodes.load as load
from loopwright.state.repair import RepairReport
load.repair = lambda messages, results=None: (list(messages), RepairReport())
"""
FORGETFUL_REPAIR = """
import loopwright.nodes.load as load
real = load.repair
def repair(messages, results=None):
    mended, report = real(messages, results)
    return [m for m in mended if getattr(m, "content", "") != "second" and m.id != "t3"], report
load.repair = repair
"""
DEAF_AND_BOASTFUL = """
import loopwright.nodes.finish as finish
import loopwright.nodes.queue_drain as node
real = node.take
async def take(run, cursor, queue):
    return None if queue == "steering" else await real(run, cursor, queue)
node.take = take
finish.verdict = lambda decision, messages: ("completed", "answered")
"""
SENDS_EVERYTHING = """
import loopwright.providers.wire as wire
wire._sendable = lambda message: message
"""


def test_a_runtime_that_repairs_nothing_fails_all_but_the_healthy_transcripts() -> None:
    status, lines = run("vectors", VECTORS, "repair", before=NO_REPAIR)
    healthy = {"healthy", "healthy-empty", "already-repaired", "error-result-kept"}
    ids = {v["id"] for v in json.loads((VECTORS / "repair.json").read_text())["vectors"]}
    assert failed(lines) == ids - {f"repair/{name}" for name in healthy}
    assert (status, lines[-1]) == (1, "25 cases, 4 passed")


def test_a_runtime_that_loses_a_result_fails() -> None:
    status, lines = run("reports", CASES, "dup-id", before=FORGETFUL_REPAIR)
    assert (status, failed(lines)) == (1, {"B152a", "B153a"})


def test_a_runtime_that_hears_no_steering_and_calls_every_run_completed_fails() -> None:
    status, lines = run("reports", CASES, "steering", "cancel", before=DEAF_AND_BOASTFUL)
    assert (status, failed(lines)) == (1, {"B072a", "B072c", "B072d", "B075a", "B192a"})


def test_a_runtime_that_sends_what_servers_do_not_know_fails() -> None:
    status, lines = run("vectors", VECTORS, "api_messages", before=SENDS_EVERYTHING)
    assert (status, failed(lines)) == (
        1,
        {"api_messages/strip-reasoning", "api_messages/tool-pair"},
    )


def case(id: str, **changes: Any) -> dict[str, Any]:
    """A report case that passes, with changes."""
    rows = [{"role": "user", "id": "u1"}]
    base = {"kind": "transcript", "input": {"messages": rows}, "expect": {"unchanged": True}}
    return {"id": id, **base, **changes}


def test_what_a_driver_does_not_know_or_find_is_a_failure(tmp_path: Path) -> None:
    cases = [
        case("passes"),
        case("kind", kind="transcripts"),
        case("key", expect={"unchanged": True, "kepd": []}),
        case("input", input={"messages": [], "policy": "x"}),
        case("role", input={"messages": [{"role": "robot", "id": "r"}]}),
        case("unmet", expect={"unchanged": False}),
    ]
    file = tmp_path / "reports.jsonl"
    file.write_text("\n".join(map(json.dumps, cases)))
    status, lines = run("reports", file)
    assert status == 1
    assert lines == [
        "FAIL kind: unknown kind 'transcripts': nothing runs it",
        "FAIL key: unknown key 'kepd' in expect",
        "FAIL input: unknown key 'policy' in input",
        "FAIL role: ValueError: a stored robot message with ['id', 'role']",
        "FAIL unmet: unchanged: the ledger is u1",
        "6 cases, 1 passed",
    ]
    assert run("reports", file, "none")[1][-1] == "1 cases, 0 passed"


def test_a_suite_that_nothing_runs_and_an_unknown_builder_are_failures(tmp_path: Path) -> None:
    vector = {"id": "odd/1", "input": {"messages": []}, "expected": {}}
    (tmp_path / "odd.json").write_text(json.dumps({"vectors": [vector]}))
    built = {**vector, "id": "repair/1", "input": {"messages": {"$lst": 1}}}
    (tmp_path / "repair.json").write_text(json.dumps({"vectors": [built]}))
    status, lines = run("vectors", tmp_path, "odd", "repair", "none")
    assert (status, failed(lines)) == (1, {"odd/1", "repair/1", "none"})
    assert lines[-1] == "3 cases, 0 passed"


def test_running_no_cases_is_not_a_success() -> None:
    assert run_cases([]) == 1
