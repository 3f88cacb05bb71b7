"""Plays scenarios on mutated rules: `python -m tests.conformance.pi.mutants`.

A mutant is a small change of one production function; the scenarios named with it must notice.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tests.conformance.pi.__main__ import COPIES, cases
from tests.conformance.pi.playing import fault
from tests.conformance.pi.variants import VARIANTS


@dataclass(frozen=True)
class Mutant:
    """What of a function's source is replaced by what, and which scenarios must notice it."""

    name: str
    function: str
    """Its module within the package, a colon, and its name."""

    edits: tuple[tuple[str, str], ...]
    noticed_by: tuple[str, ...]


def edit(old: str, new: str) -> tuple[tuple[str, str], ...]:
    """A single edit."""
    return ((old, new),)


MUTANTS = (
    Mutant(
        "no refresh poll behind prepare_next_turn",
        "nodes.queue_drain:queue_drain",
        edit(
            "update = await _prepared(state, run)\n    if pending is None",
            "update = await _prepared(state, run)\n    if False",
        ),
        ("steer-inside-prepare", "one-tool"),
    ),
    Mutant(
        "refresh poll although something is pending",
        "nodes.queue_drain:queue_drain",
        edit(
            'if pending is None:\n        pending = await take(run, cursor, "steering")\n',
            'pending = await take(run, cursor, "steering") or pending\n',
        ),
        ("steer-three-one-at-a-time", "followup-one"),
    ),
    Mutant(
        "follow-up polled before steering",
        "nodes.queue_drain:queue_drain",
        (
            (
                'take(run, cursor, "steering")\n    if kind == "satisfied" and',
                'take(run, cursor, "follow_up")\n    if kind == "satisfied" and',
            ),
            (
                'take(run, cursor, "follow_up")\n        if',
                'take(run, cursor, "steering")\n        if',
            ),
        ),
        ("steer-and-followup-together", "followup-waits-for-tools"),
    ),
    Mutant(
        "prepare_next_turn called although the run ends",
        "nodes.queue_drain:queue_drain",
        edit(
            "if pending is None:\n            return",
            "if pending is None:\n            await _prepared(state, run)\n            return",
        ),
        ("prepare-not-called-when-ending",),
    ),
    Mutant(
        "steering polled again at once in a continuation",
        "nodes.load:_from_queues",
        edit('"opening_polled"', '"opening"'),
        ("continue-assistant-tail-steering",),
    ),
    Mutant(
        "queue mode frozen for the run",
        "runs:Run.queue_mode",
        edit("live or settings", "settings"),
        ("queue-mode-switch-mid-run",),
    ),
    Mutant(
        "any terminating result ends the run",
        "nodes.tool_batch:_all_terminate",
        edit("and all(", "and any("),
        ("terminate-mixed", "terminate-does-not-skip-later-tools"),
    ),
    Mutant(
        "an answer cut off by length ends the run",
        "nodes.tool_batch:_cut_off",
        edit('"again"', '"satisfied"'),
        ("length-with-calls",),
    ),
    Mutant(
        "results in the order of completion",
        "nodes.tool_batch:_all_settled",
        (
            (
                "try:\n        if tasks",
                "finished = [body for body in bodies if isinstance(body, Outcome)]\n"
                "    for task in tasks:\n        task.add_done_callback(finished.append)\n"
                "    try:\n        if tasks",
            ),
            ("for body in bodies\n    ]", "for body in finished\n    ]"),
        ),
        ("parallel-reverse-finish",),
    ),
    Mutant(
        "failures of the preparation told after the batch",
        "nodes.tool_batch:_parallel",
        (
            (
                "await end(batch, prepared) if isinstance(prepared, Outcome) else prepared",
                "prepared",
            ),
            (
                "settled = await",
                "[await end(batch, item) for item in ready if isinstance(item, Outcome)]\n"
                "    settled = await",
            ),
        ),
        ("unknown-tool-in-parallel-batch",),
    ),
    Mutant(
        "the sequential policy ignored",
        "recovery:is_sequential",
        edit('return forced or run.settings.tool_execution == "sequential"', "return forced"),
        ("sequential-mode-three", "abort-during-sequential-tools"),
    ),
    Mutant(
        "a sequential tool ignored",
        "recovery:is_sequential",
        edit("return forced or", "return"),
        ("one-sequential-tool-forces-batch",),
    ),
    Mutant(
        "hooks around a call see earlier results of the batch",
        "calls:hook_context",
        edit("list(batch.messages)", "[*batch.messages, *batch.run.appended]"),
        ("sequential-mode-three",),
    ),
    Mutant(
        "after_tool_call not asked about a call that raised",
        "performing:_after",
        edit("if hook is None", "if hook is None or result.is_error"),
        ("tool-throws",),
    ),
    Mutant(
        "a blocked call cannot end the run",
        "calls:_as_answered",
        edit("terminate=answer.terminate", "terminate=None"),
        ("before-block-terminate",),
    ),
    Mutant(
        "going on decided by the stop reason instead of the calls",
        "unfinished:kind_of",
        edit("if calls(message)", 'if stop_reason(message) == "tool_use"'),
        ("stop-with-calls", "tooluse-without-calls"),
    ),
    Mutant(
        "should_stop_after_turn ignored",
        "nodes.stop_hook:_after_turn",
        edit("if hook is not None and", "if False and hook is not None and"),
        ("should-stop-with-queues", "stop-hook-on-plain-answer-with-followup"),
    ),
    Mutant(
        "an abort during tools ends the run at once",
        "nodes.stop_hook:_after_turn",
        edit(
            "hook = ",
            'if run.signal.aborted:\n        return Decision(kind="stopped", reason="aborted")\n'
            "    hook = ",
        ),
        ("abort-during-parallel-tools",),
    ),
    Mutant(
        "a node raises instead of deciding for a fault",
        "graph.guard:guarded",
        edit("except Exception as", "except ArithmeticError as"),
        ("streamfn-throws", "listener-throws-mid-run"),
    ),
    Mutant(
        "the edge behind a failed answer goes on",
        "graph.edges:after_stop_hook",
        edit('"hard_stop": "finish"', '"hard_stop": "queue_drain"'),
        ("error-stop",),
    ),
    Mutant(
        "the edge behind a stop rule goes on",
        "graph.edges:after_stop_hook",
        edit('"stopped": "finish"', '"stopped": "queue_drain"'),
        ("should-stop-with-queues",),
    ),
    Mutant(
        "agent_end lists the whole run after a fault",
        "nodes.fail:fail",
        edit("messages=[message]", 'messages=[*state["messages"][record["first"] :], message]'),
        ("streamfn-throws-turn-2",),
    ),
)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The mutant instead of the function, for everyone who uses it. Raises LookupError."""
    function = _found(mutant.function)
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in mutant.edits:
        if source.count(old) != 1:
            raise LookupError(f"{mutant.function} has not exactly one {old!r}")
        source = source.replace(old, new)
    namespace: dict[str, Any] = dict(function.__globals__)
    exec(compile(source, f"<mutant of {mutant.function}>", "exec"), namespace)
    original, function.__code__ = function.__code__, namespace[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = original


def _found(name: str) -> FunctionType:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(f"loopwright.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    assert isinstance(found, FunctionType)
    return found


def wrong(names: tuple[str, ...]) -> dict[str, str | None]:
    """What is wrong with the traces of these scenarios, played straight and in memory."""
    return {case["name"]: fault(case, VARIANTS[0]) for case in cases(COPIES, names)}


def survivors(mutant: Mutant) -> list[str]:
    """What speaks against a mutant being caught: scenarios that fail without it, or pass with."""
    before = wrong(mutant.noticed_by)
    with applied(mutant):
        found = wrong(mutant.noticed_by)
    reasons = [f"{name} fails without it" for name, fault in before.items() if fault]
    return reasons + [f"{name} does not notice it" for name, fault in found.items() if not fault]


if __name__ == "__main__":
    alive = {mutant.name: survivors(mutant) for mutant in MUTANTS}
    for mutant in MUTANTS:
        reasons = "; ".join(alive[mutant.name])
        print(f"{mutant.name}: {reasons or 'noticed by ' + ', '.join(mutant.noticed_by)}")
    sys.exit(any(alive.values()))
