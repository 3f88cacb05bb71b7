"""What a real run makes of a thread whose last run died: the ledger after `load`, and the request.

How cases describe transcripts is their drivers' business.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AnyMessage, BaseMessage

from loopwright import Agent
from loopwright.events import Repair
from loopwright.providers.wire import openai_form
from loopwright.state.messages import new_id
from loopwright.state.repair import RepairReport
from loopwright.state.schema import RunRecord
from loopwright.testing import ScriptedModel

THREAD = "stored"
UNKNOWN_TO_SERVERS = (
    "additional_kwargs",
    "artifact",
    "invalid_tool_calls",
    "model_extra",
    "response_metadata",
    "usage_metadata",
)


@dataclass(frozen=True)
class Loaded:
    """What became of a stored transcript when the next run loaded it."""

    messages: list[AnyMessage]
    """The stored ledger after the run, without the prompt and the answer of that run."""

    sent: list[dict[str, Any]]
    """The request of that run in wire form, without its prompt."""

    report: dict[str, int] = field(default_factory=dict)
    """What the run told of its repair; all zero if it told nothing."""


async def load(
    messages: Sequence[AnyMessage], system_prompt: str = "", *, died: bool = True
) -> Loaded:
    """Store the messages as what a run left that died (or ended), and run a prompt on them."""
    model = ScriptedModel(["Done."])
    report = RepairReport().counts()
    async with Agent(model, system_prompt=system_prompt) as agent:
        await store(agent, messages, "running" if died else "ended")
        async for event in agent.stream("Go on.", thread=THREAD):
            if isinstance(event, Repair):
                report = event.report
        ledger = agent.messages(THREAD)
    (request,) = model.requests
    return Loaded(ledger[:-2], [wire_row(message) for message in request.messages[:-1]], report)


def wire_row(message: BaseMessage) -> dict[str, Any]:
    """The wire form of a message that a model was given, and whatever else is left on it."""
    unknown = {name: getattr(message, name, None) for name in UNKNOWN_TO_SERVERS}
    (row,) = openai_form([message])
    return {**row, **{name: value for name, value in unknown.items() if value}}


async def store(
    agent: Agent, messages: Sequence[AnyMessage], status: Literal["running", "ended"]
) -> None:
    """Give a thread this transcript, and the record of the run that left it.

    It is written as LangGraph's own graph writes: the entrance would refuse what is not valid.
    """
    record = RunRecord(
        id=new_id(),
        resumed_from=None,
        status=status,
        sequence=0,
        turn=1,
        first=0,
        overflow=False,
    )
    config: Any = {"configurable": {"thread_id": THREAD}}
    await asyncio.to_thread(agent.graph.rewrite, THREAD, messages)
    await agent.graph.aupdate_state(config, {"run": record}, as_node="finish")
