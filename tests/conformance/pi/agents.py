"""Plays the steps of a scenario on a PiAgent, and shows in what they leave it.

What happens to the agent on the way is in `acting`; its storage and graph are `variants`'s.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.pi.acting import ActingHost
from tests.conformance.pi.recording import texts
from tests.conformance.pi.shorthand import Json, simplified
from tests.conformance.pi.world import World


class AgentHost(ActingHost):
    """A PiAgent with the steps that a caller takes."""

    def __init__(self, world: World, storage: Json) -> None:
        super().__init__(world, storage)
        self._runs: dict[str, Awaitable[Any]] = {}
        self.actions |= self._step_actions()

    def final(self) -> Json:
        """The state in which the scenario leaves the agent."""
        return {
            **self.shown_state(),
            "model": self.agent.model,
            "thinkingLevel": self.agent.thinking_level,
            "systemPrompt": self.agent.system_prompt,
            "tools": [tool.name for tool in self.agent.tools],
            "leftSteering": texts(self.agent.queued("steering")),
            "leftFollowUp": texts(self.agent.queued("follow_up")),
        }

    def transcript(self) -> list[Json]:
        """The public messages."""
        return [simplified(message) for message in self.agent.state.messages]

    def _step_actions(self) -> Json:
        return {
            "prompt": self._prompt,
            "continue": self._continue,
            "await": self._await,
            "waitForIdle": self._wait_for_idle,
            "reset": self._reset,
        }

    async def _prompt(self, step: Json) -> None:
        await self._run(step, lambda: self.prompted(step))

    async def _continue(self, step: Json) -> None:
        await self._run(step, self.continued)

    async def _run(self, step: Json, begin: Callable[[], Awaitable[Any]]) -> None:
        """Begin a run now; wait for it unless the step only starts it."""
        run = begin()
        if "start" in step:
            self._runs[step["start"]] = run
        else:
            await run

    async def _await(self, step: Json) -> None:
        await self._runs[step["id"]]

    async def _wait_for_idle(self, step: Json) -> None:
        await self.agent.wait_for_idle()

    async def _reset(self, step: Json) -> None:
        self.agent.reset()
