"""Hermes behind a gateway: agents are kept between messages and made anew when what they are made
of has changed (S3-09).

What an agent does with a message is in `hermes`. Nothing depends on an agent being kept.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from loopwright.events import AnyEvent
from loopwright.presets.hermes import Conversation, HermesAgent

MOST_KEPT = 256
"""Agents that are kept; the one used longest ago goes first."""

NEW = "/new"
"""The message that begins a session anew."""


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """What an agent is made of. Equal signatures may share an agent; `reasoning` and `callback` are
    set anew for each message and are not part of it.
    """

    model: str
    provider: str = ""
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    toolsets: tuple[str, ...] = ()
    prompt_extras: str = ""
    user_id: str = ""
    reasoning: str = "off"
    callback: Callable[[AnyEvent], None] | None = field(default=None, repr=False, compare=False)

    @property
    def signature(self) -> str:
        """A digest of all that matters: the whole key, and toolsets in any order."""
        told = {name: value for name, value in vars(self).items() if name not in _PER_MESSAGE}
        told["toolsets"] = sorted(set(self.toolsets))
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


_PER_MESSAGE = ("reasoning", "callback")


class Gateway:
    """Serves the messages of many sessions in one process, one run at a time in each (S3-11).

    `make(session, config)` makes an agent over the database that all of them share. Safe from any
    thread.
    """

    def __init__(
        self, make: Callable[[str, AgentConfig], HermesAgent], most_kept: int = MOST_KEPT
    ) -> None:
        self._make, self._most = make, most_kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[HermesAgent, str]] = OrderedDict()

    def handle(self, session: str, message: str, config: AgentConfig) -> Conversation:
        """Answer a message. `/new` empties the session instead; its prompt is then assembled anew.

        Raises BusyThreadError while the session is being run.
        """
        agent = self.agent(session, config)
        if message.strip() == NEW:
            agent.reset()
            self.invalidate(session)
            return Conversation(
                final_response="", messages=[], api_calls=0, completed=True, reason="new"
            )
        return agent.run_conversation(message)

    def agent(self, session: str, config: AgentConfig) -> HermesAgent:
        """The session's agent: the kept one if it was made of the same, with this message's own
        fields; else a new one."""
        with self._lock:
            kept = self._kept.pop(session, None)
            agent = kept[0] if kept and kept[1] == config.signature else self._make(session, config)
            self._kept[session] = (agent, config.signature)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        agent.callback, agent.thinking_level = config.callback, config.reasoning
        return agent

    def invalidate(self, session: str) -> None:
        """Keep the session's agent no longer: behind /new and /model, and when a fallback has taken
        over. A run that goes on is not disturbed."""
        with self._lock:
            self._kept.pop(session, None)
