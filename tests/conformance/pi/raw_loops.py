"""Plays a scenario on the raw loops, for callers who own their list of messages and their queues.

Everything that an agent adds is played on by `agents`.
"""

from typing import Any

from loopwright.presets.pi import agent_loop, agent_loop_continue
from loopwright.signals import AbortSignal
from tests.conformance.pi.acting import settings
from tests.conformance.pi.answering import Answering
from tests.conformance.pi.hooking import hooks
from tests.conformance.pi.hosting import Act, Host
from tests.conformance.pi.recording import QUEUES, Recorder, texts
from tests.conformance.pi.shorthand import Json, message, simplified
from tests.conformance.pi.tooling import tools
from tests.conformance.pi.world import World


class RawHost(Host):
    """A list of messages and two queues, run by `agent_loop` and `agent_loop_continue`."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._config: Json = world.scenario.get("agent", {})
        self._messages = [message(short) for short in self._config.get("messages", [])]
        self._queues: dict[str, list[Any]] = {name: [] for name in QUEUES}
        self._signal = AbortSignal()
        self.actions |= {
            "steer": self._queue("steering"),
            "followUp": self._queue("follow_up"),
            "abort": self._abort,
            "agentLoop": self._loop,
            "agentLoopContinue": self._loop_continue,
        }

    def final(self) -> Json:
        """What is left in the queues."""
        return {
            "leftSteering": texts(self._queues["steering"]),
            "leftFollowUp": texts(self._queues["follow_up"]),
        }

    def context_messages(self) -> list[Json]:
        """The caller's own list."""
        return [simplified(message) for message in self._messages]

    def _queue(self, name: str) -> Act:
        async def act(action: Json) -> None:
            self._queues[name].append(self.queued(action))

        return act

    async def _abort(self, action: Json) -> None:
        self.did(action)
        self._signal.abort()

    async def _loop(self, step: Json) -> None:
        prompts = [message(short) for short in step["prompts"]]
        await self._heard(agent_loop(prompts, self._messages, **self._parts(step)))

    async def _loop_continue(self, step: Json) -> None:
        await self._heard(agent_loop_continue(self._messages, **self._parts(step)))

    async def _heard(self, stream: Any) -> None:
        recorder = Recorder(self.world, None)
        async for event in stream:
            await recorder.hear(event)
        await stream.result()

    def _parts(self, step: Json) -> Json:
        for name, key in (("steering", "steer"), ("follow_up", "followUp")):
            self._queues[name] += [message(short) for short in step.get(key, [])]
        self._signal = AbortSignal()
        return {
            "models": lambda name: Answering(self.world, name),
            "model": self._config.get("model", "m1"),
            "tools": tools(self.world),
            "system_prompt": self._config.get("systemPrompt", "SYS"),
            "settings": settings(self._config),
            "hooks": hooks(self.world, self.world.scenario.get("hooks", {}), lambda: None),
            "signal": self._signal,
            "get_steering": lambda: self._polled("steering"),
            "get_follow_up": lambda: self._polled("follow_up"),
        }

    def _polled(self, name: str) -> list[Any]:
        """What one poll of a queue delivers, as its mode says."""
        waiting, all_at_once = self._queues[name], self._mode(name) == "all"
        taken = waiting[:] if all_at_once else waiting[:1]
        del waiting[: len(taken)]
        self.world.log.append(f"poll:{QUEUES[name]}:{len(taken)}")
        return taken

    def _mode(self, name: str) -> str:
        return str(getattr(settings(self._config), f"{name}_mode"))
