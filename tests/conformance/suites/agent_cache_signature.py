"""Suite `agent_cache_signature`: when two configurations share an agent of the gateway."""

from collections.abc import Sequence
from typing import Any

from loopwright.presets.hermes import HermesAgent
from loopwright.presets.hermes_gateway import AgentConfig, Gateway
from loopwright.testing import ScriptedModel
from tests.conformance.running import Case, difference, unknown_keys

FIELDS = ["model", "provider", "api_key", "base_url", "toolsets", "user_id", "reasoning"]
SESSION = "s"


async def drive(case: Case) -> Sequence[str]:
    """A message with each configuration to one session; `event` comes between them."""
    unknown = unknown_keys("input", case.input, ["first", "second"])
    unknown += unknown_keys("expected", case.expect, ["same"])
    first, second = dict(case.input["first"]), dict(case.input["second"])
    event = second.pop("event", None)
    unknown += unknown_keys("first", first, FIELDS) + unknown_keys("second", second, FIELDS)
    if unknown:
        return unknown
    made: list[HermesAgent] = []

    def make(session: str, config: AgentConfig) -> HermesAgent:
        made.append(HermesAgent(ScriptedModel(["done"] * 3), session=session))
        return made[-1]

    gateway = Gateway(make)
    gateway.handle(SESSION, "hi", _config(first))
    if event is not None:
        gateway.handle(SESSION, event, _config(first))
    gateway.handle(SESSION, "hi again", _config(second))
    for agent in made:
        await agent.aclose()
    return difference("same", len(made) == 1, case.expect["same"])


def _config(fields: dict[str, Any]) -> AgentConfig:
    return AgentConfig(**{**fields, "toolsets": tuple(fields["toolsets"])})
