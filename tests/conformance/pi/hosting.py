"""What a scenario is played on has in common: its steps one after the other, and the plain actions.

An agent is played on by `agents`, a raw loop by `loops`.
"""

import asyncio
from collections.abc import Awaitable, Callable

from langchain_core.messages import AnyMessage

from tests.conformance.pi.shorthand import Json, message
from tests.conformance.pi.world import Scripted, World, units

Act = Callable[[Json], Awaitable[None]]

MOST_UNITS = 10_000
"""Units of virtual time that a step may take before it counts as hung."""


def spoken(action: Json) -> AnyMessage:
    """The message of an action that has one, in short form or as text."""
    short: str | Json = action["message"] if "message" in action else action["text"]
    return message(short)


class Host:
    """Something that a scenario is played on."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.act = self.act
        self.actions: dict[str, Act] = {
            "sleep": self._sleep,
            "open": self._open,
            "wait": self._wait,
            "mark": self._mark,
            "throw": self._throw,
        }

    async def act(self, action: Json) -> None:
        """Do one action. Raises KeyError for one that this host has not."""
        await self.actions[action["do"]](action)

    async def play(self) -> None:
        """Do the steps of the scenario and record how each ended."""
        for step in self.world.scenario["steps"]:
            self.world.steps.append(await self._played(step))
        await units(self.world.scenario.get("lingerUnits", 0))

    async def _played(self, step: Json) -> Json:
        mark = ":".join(str(step[key]) for key in ("do", "text", "id") if key in step)
        self.world.log.append(f"step:{mark}")
        try:
            async with asyncio.timeout(MOST_UNITS):
                await self.act(step)
        except TimeoutError:
            self.done(step["do"], "error:hung")
            return {"do": step["do"], "ok": False, "error": "hung"}
        except Exception as error:  # whatever a step raises is how it ended
            self.done(step["do"], f"error:{error!r}")
            return {"do": step["do"], "ok": False, "error": str(error)}
        self.done(step["do"], "ok")
        return {"do": step["do"], "ok": True}

    def done(self, name: str, how: str) -> None:
        """Log the end of a step."""
        self.world.log.append(f"step-done:{name}:{how}")

    def did(self, action: Json, *detail: str) -> None:
        """Log an action."""
        self.world.log.append(":".join(["do", action["do"], *detail]))

    def queued(self, action: Json) -> AnyMessage:
        """Log an action that queues a message, and give the message."""
        self.did(action, *([action["text"]] if "text" in action else []))
        return spoken(action)

    async def _sleep(self, action: Json) -> None:
        await units(action["units"])

    async def _open(self, action: Json) -> None:
        self.did(action, action["gate"])
        self.world.gate(action["gate"]).set()

    async def _wait(self, action: Json) -> None:
        await self.world.gate(action["gate"]).wait()

    async def _mark(self, action: Json) -> None:
        self.world.log.append(f"mark:{action['label']}")

    async def _throw(self, action: Json) -> None:
        self.did(action, action["error"])
        raise Scripted(action["error"])
