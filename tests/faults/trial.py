"""One run against a server with faults in store, and what of it is not as it should be."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx2
from langchain_core.messages import AIMessage, ToolMessage

from loopwright import Settings, Tool, ToolContext, ToolResult
from loopwright.providers.waits import LONGEST_OWN
from loopwright.state.messages import ERROR, stop_reason
from loopwright.testing import HttpReply
from loopwright.testing.server import Reply
from tests.conformance.asking import LONG, Asked, ask, client
from tests.conformance.checks import unanswered
from tests.faults.clocks import STALL, SilentClock, StallingClock
from tests.faults.plan import Fault, Plan

NOT_ASKED = httpx2.Client(verify=False)
"""The client for blocking requests, of which there are none: one for all, since making it reads
every certificate of the machine."""

BEHIND_THE_END = HttpReply(status=400, body={"error": {"message": "nothing more was expected"}})


@dataclass(frozen=True)
class Trial:
    """What came of one seed."""

    requests: int
    counts: Counter[str]
    """How often each fault was met, and how the run ended."""

    wrong: list[str]


async def attempt(seed: int, http: httpx2.AsyncClient) -> Trial:
    """Run the plan of this seed and check every word of it."""
    plan, executed, clock = Plan.of(Random(seed)), list[Any](), StallingClock()
    asked = await ask(
        lambda number, body: _reply(plan, number),
        settings=Settings(
            retries=plan.retries, stall_timeout=STALL, compaction_tail=2, repetition="off"
        ),
        tools=[_tool(executed)],
        history=LONG[:2],
        model=lambda url: client(url, http_async_client=http, http_client=NOT_ASKED),
        clock=clock,
        server_clock=SilentClock(clock),
    )
    counts = Counter(fault.name for fault in plan.faults[: len(asked.bodies)])
    counts[f"ended {asked.result.status}"] += 1
    return Trial(len(asked.bodies), counts, list(_wrong(plan, asked, executed)))


def _reply(plan: Plan, number: int) -> Reply:
    return plan.faults[number].reply if number < len(plan.faults) else BEHIND_THE_END


def _tool(executed: list[Any]) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        executed.append(arguments["n"])
        return ToolResult(content="ok")

    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return Tool(name="step", description="One step.", parameters=number, execute=execute)


def _wrong(plan: Plan, asked: Asked, executed: list[Any]) -> Iterator[str]:
    """Everything that is not as the plan says it must be."""
    faults, last = plan.faults, plan.faults[-1]
    if len(asked.bodies) != len(faults):
        yield f"{len(asked.bodies)} requests, expected {len(faults)}"
        return
    wanted = [int(f.reply.calls[0][2]["n"]) for f in faults if f.effect == "tools"]  # type: ignore[union-attr,index]
    if executed != wanted:
        yield f"ran {executed}, expected {wanted}"
    if open_calls := unanswered(asked.ledger):
        yield f"without a result: {open_calls}"
    if any("VOID" in str(m.content) for m in asked.ledger[:-1]):
        yield "text of a voided attempt is stored"
    yield from _wrong_end(last, asked)
    yield from _wrong_waits(faults, asked)
    if asked.compactions != _compactions(faults):
        yield f"{asked.compactions} compactions, expected {_compactions(faults)}"


def _wrong_end(last: Fault, asked: Asked) -> Iterator[str]:
    result = asked.result
    if last.effect == "answer":
        if (result.status, result.final_text) != ("completed", "ALL DONE"):
            yield f"ended {result.status} with {result.final_text!r}: {result.error}"
        return
    kind = (result.error or {}).get("kind")
    if result.status != "failed" or (last.kind and kind != last.kind):
        yield f"ended {result.status} as {kind}, expected {last.kind} of {last.name}"
    tail = asked.ledger[-1]
    if not isinstance(tail, AIMessage | ToolMessage) or stop_reason(tail) != ERROR:
        yield f"a failed run ends with {tail.type}"


def _wrong_waits(faults: list[Fault], asked: Asked) -> Iterator[str]:
    """Every wait is the one that its server asked for, else our own back-off."""
    waited = [f for at, f in enumerate(faults) if f.effect == "again" and at < len(faults) - 1]
    if len(waited) != len(asked.waits):
        yield f"{len(asked.waits)} waits, expected {len(waited)}"
    for fault, wait in zip(waited, asked.waits, strict=False):
        least, most = fault.waits or (1.0, LONGEST_OWN)
        if not least <= wait <= most:
            yield f"waited {wait} s behind {fault.name}, expected {least} to {most}"


def _compactions(faults: list[Fault]) -> int:
    return sum(f.effect == "compact" and at < len(faults) - 1 for at, f in enumerate(faults))
