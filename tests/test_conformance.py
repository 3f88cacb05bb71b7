"""The conformance runners: they pass on the copies in `data`, and fail where something is wrong.

What the vectors and cases say stands in their files; their drivers are in `conformance/`.
"""

import json
import subprocess
import sys
from collections import Counter
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


def rows() -> list[dict[str, Any]]:
    """The report cases that are copied here."""
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]


def test_all_vectors_pass() -> None:
    files = [json.loads(path.read_text(encoding="utf-8")) for path in VECTORS.glob("*.json")]
    count = sum(len(file["vectors"]) for file in files)
    assert len(files) >= 10 and run("vectors") == (0, [f"{count} cases, {count} passed"])


@pytest.mark.parametrize(("kind", "count"), Counter(row["kind"] for row in rows()).items())
def test_all_cases_of_a_kind_pass(kind: str, count: int) -> None:
    assert run("reports", CASES, kind) == (0, [f"{count} cases, {count} passed"])


def test_no_report_case_is_missing_here() -> None:
    assert len(rows()) == 176


NO_REPAIR = """
import loopwright.nodes.load as load
from loopwright.state.repair import RepairReport
load.repair = lambda messages, *known: (list(messages), RepairReport())
"""
FORGETFUL_REPAIR = """
import loopwright.nodes.load as load
real = load.repair
def repair(messages, *known):
    mended, report = real(messages, *known)
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
import loopwright.providers.wire.form as form
form.user = form.answer = lambda message, target: message
form.result = lambda message, target, shown: (message, [])
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


BROKEN_STORAGE = """
import loopwright.state.connecting as connecting
from loopwright.state.retention import Retention
from loopwright.state.opening import JsonPlusSerializer
connecting.BUSY_TIMEOUT = 0.1
Retention.delete = lambda self, thread: None
real = JsonPlusSerializer.loads_typed
def loads_typed(self, data):
    value = real(self, data)
    return None if "kept" in str(value) else value
JsonPlusSerializer.loads_typed = loads_typed
"""


def test_a_storage_that_waits_for_no_lock_deletes_nothing_and_forgets_values_fails(
    tmp_path: Path,
) -> None:
    chosen = [row for row in rows() if row["id"] in ("B011b", "B141a", "B144a", "B013a")]
    file = tmp_path / "reports.jsonl"
    file.write_text("\n".join(map(json.dumps, chosen)))
    status, lines = run("reports", file, before=BROKEN_STORAGE)
    assert (status, failed(lines)) == (1, {"B011b", "B141a", "B144a"})


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
