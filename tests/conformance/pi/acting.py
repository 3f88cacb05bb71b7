"""A PiAgent that a scenario is played on, and all that triggers and steps may do to it on the way.

The runs that its steps begin, and in what they leave the agent, are in `agents`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from loopwright import Settings
from loopwright.live import LiveState
from tests.conformance.pi.answering import Answering
from tests.conformance.pi.hooking import hooks
from tests.conformance.pi.hosting import Host, spoken
from tests.conformance.pi.observing import ObservedAgent, ObservedLog
from tests.conformance.pi.recording import ExtraListener, Recorder, public_state
from tests.conformance.pi.shorthand import Json, image_blocks, message
from tests.conformance.pi.tooling import tools
from tests.conformance.pi.world import World, compact


def settings(config: Json) -> Settings:
    """The settings that a scenario's `agent` asks for."""
    names = config.get("tools")
    return Settings(
        thinking_level=config.get("thinkingLevel", "off"),
        tool_execution=config.get("toolExecution", "parallel"),
        steering_mode=mode(config.get("steeringMode", "one-at-a-time")),
        follow_up_mode=mode(config.get("followUpMode", "one-at-a-time")),
        tools=None if names is None else tuple(names),
    )


def mode(name: str) -> Any:
    """Our name of a queue mode."""
    return name.replace("-", "_")


class ActingHost(Host):
    """A PiAgent with the scenario's tools, hooks and subscribers, and what is done to it."""

    def __init__(self, world: World, storage: Json) -> None:
        super().__init__(world)
        config: Json = world.scenario.get("agent", {})
        self._hooks: Json = dict(world.scenario.get("hooks", {}))
        self._removals: dict[str, Callable[[], None]] = {}
        self.agent = ObservedAgent(
            config.get("model", "m1"),
            tools(world),
            config.get("systemPrompt", "SYS"),
            messages=[message(short) for short in config.get("messages", [])],
            models=lambda name: Answering(world, name),
            settings=settings(config),
            **storage,
        )
        self.agent.world = world
        self.agent.hooks = hooks(world, self._hooks, self._state)
        graph = self.agent.graph
        observed = ObservedLog(world, graph.dependencies.log)
        graph.dependencies = replace(graph.dependencies, log=observed)
        self._subscribe_all()
        self.actions |= {**self._queue_actions(), **self._agent_actions()}

    def _state(self) -> LiveState:
        return self.agent.state

    def _subscribe_all(self) -> None:
        for spec in self.world.scenario.get("listenersBefore", []):
            self._add(spec)
        self.agent.subscribe(Recorder(self.world, self.agent.state).hear)
        for spec in self.world.scenario.get("listeners", []):
            self._add(spec)

    def _add(self, spec: Json) -> None:
        self._removals[spec["id"]] = self.agent.subscribe(ExtraListener(self.world, spec).hear)

    def shown_state(self) -> Json:
        """The public state between events."""
        queued = bool(self.agent.queued("steering") or self.agent.queued("follow_up"))
        return {**public_state(self.agent.state), "queued": queued}

    # ---- runs

    def prompted(self, step: Json) -> Awaitable[Any]:
        if "images" in step:
            images = image_blocks(step["images"])
            return self._begun(lambda: self.agent.prompt(step["text"], images=images))
        if "messages" in step:
            messages = [message(short) for short in step["messages"]]
            return self._begun(lambda: self.agent.prompt(messages))
        given = step["text"] if "text" in step else spoken(step)
        return self._begun(lambda: self.agent.prompt(given))

    def continued(self) -> Awaitable[Any]:
        return self._begun(self.agent.continue_)

    def _begun(self, begin: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """The run that has begun, or its refusal, which is told to whoever waits for it."""
        try:
            return begin()
        except Exception as error:  # whatever it raises is the refusal
            refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    # ---- actions

    def _queue_actions(self) -> Json:
        async def steer(action: Json) -> None:
            self.agent.steer(self.queued(action))

        async def follow_up(action: Json) -> None:
            self.agent.follow_up(self.queued(action))

        def clearing(clear: Callable[[], None]) -> Any:
            async def act(action: Json) -> None:
                self.did(action)
                clear()

            return act

        return {
            "steer": steer,
            "followUp": follow_up,
            "clearSteering": clearing(self.agent.clear_steering),
            "clearFollowUp": clearing(self.agent.clear_follow_up),
            "clearAll": clearing(self.agent.clear_queues),
        }

    def _agent_actions(self) -> Json:
        return {
            "abort": self._abort,
            "set": self._set,
            "pushStateMessage": self._push,
            "probe": self._probe,
            "tryPrompt": self._try_prompt,
            "tryContinue": self._try_continue,
            "tryReset": self._try_reset,
            "watchIdle": self._watch_idle,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
        }

    async def _abort(self, action: Json) -> None:
        self.did(action)
        self.agent.abort()

    async def _set(self, action: Json) -> None:
        self.did(action, action["field"])
        _SETTERS[action["field"]](self, action)

    def set_hooks(self, action: Json) -> None:
        """Install hooks: `value` is the spec of the hook `name`, or specs by name; null removes."""
        value, name = action["value"], action.get("name", action.get("hook"))
        if name is None and "name" in (value or {}):
            name, value = value["name"], value.get("spec", {})
        specs: Json = value if name is None else {name: value}
        self._hooks = {**self._hooks, **specs}
        self._hooks = {name: spec for name, spec in self._hooks.items() if spec is not None}
        self.agent.hooks = hooks(self.world, self._hooks, self._state)

    async def _push(self, action: Json) -> None:
        self.did(action)
        self.agent.state.messages.append(spoken(action))

    async def _probe(self, action: Json) -> None:
        self.world.log.append(f"probe:{action['label']}:{compact(self.shown_state())}")

    async def _try_prompt(self, action: Json) -> None:
        self.world.later(self._told("tryPrompt", self.prompted(action)))

    async def _try_continue(self, action: Json) -> None:
        self.world.later(self._told("tryContinue", self.continued()))

    async def _told(self, name: str, work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception as error:  # whatever it raises is what is told
            self.world.log.append(f"{name}:rejected:{error}")
        else:
            self.world.log.append(f"{name}:ok")

    async def _try_reset(self, action: Json) -> None:
        try:
            self.agent.reset()
        except Exception as error:  # whatever it raises is what is told
            self.world.log.append(f"tryReset:threw:{error}")
        else:
            self.world.log.append("tryReset:ok")

    async def _watch_idle(self, action: Json) -> None:
        self.world.later(self._told("idle", self.agent.wait_for_idle()))

    async def _subscribe(self, action: Json) -> None:
        self.did(action, action["id"])
        known = [*self.world.scenario.get("listeners", []), {"id": action["id"], "log": True}]
        spec = next(spec for spec in known if spec["id"] == action["id"])
        self._add({**spec, **{key: value for key, value in action.items() if key != "do"}})

    async def _unsubscribe(self, action: Json) -> None:
        self.did(action, action["id"])
        self._removals[action["id"]]()


def _assigned(name: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    def assign(host: ActingHost, action: Json) -> None:
        setattr(host.agent, name, convert(action["value"]))

    return assign


def _set_messages(host: ActingHost, action: Json) -> None:
    host.agent.state.messages = [message(short) for short in action["value"]]


_SETTERS: dict[str, Callable[[ActingHost, Json], None]] = {
    "model": _assigned("model"),
    "thinkingLevel": _assigned("thinking_level"),
    "systemPrompt": _assigned("system_prompt"),
    "tools": _assigned("tools"),
    "steeringMode": _assigned("steering_mode", mode),
    "followUpMode": _assigned("follow_up_mode", mode),
    "toolExecution": _assigned("tool_execution"),
    "messages": _set_messages,
    "hook": ActingHost.set_hooks,
}
