"""Hermes behind a gateway: agents are reused, made anew, thrown away, and nothing depends on it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwright.presets.hermes import HermesAgent
from loopwright.presets.hermes_gateway import AgentConfig, Gateway
from loopwright.testing import Response, ScriptedModel

CONFIG = AgentConfig(model="m", provider="p", api_key="key-AAAA", toolsets=("files",))


class Bot:
    """A gateway over one file, whose models answer by what they are asked."""

    def __init__(self, database: Path, **options: Any) -> None:
        self.database = database
        self.made: list[HermesAgent] = []
        self.gateway = Gateway(self.make, **options)

    def make(self, session: str, config: AgentConfig) -> HermesAgent:
        model = ScriptedModel(iter(lambda: answer, None))
        prompt = lambda: f"prompt {len(self.made)}"  # noqa: E731 - told by how many were made
        self.made.append(
            HermesAgent(model, [look], prompt, session=session, database=self.database)
        )
        return self.made[-1]

    def close(self) -> None:
        for agent in self.made:
            agent.close()


def answer(messages: list[Any]) -> Any:
    """A call for every third message of a user, then a text that counts what was seen."""
    asked = [message for message in messages if message.type == "human"]
    if messages[-1].type == "human" and len(asked) % 3 == 0:
        return Response(calls=[(f"c{len(messages)}", "look", {"at": len(asked)})])
    return f"seen {len(messages)}"


def look(at: int) -> str:
    """Look."""
    return f"looked at {at}"


@pytest.fixture
def bot(tmp_path: Path) -> Any:
    made = Bot(tmp_path / "t.db")
    yield made
    made.close()


def without_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in m.items() if name != "id"} for m in messages]


def test_a_hit_reuses_and_a_miss_makes_anew(bot: Bot) -> None:
    first = bot.gateway.agent("s", CONFIG)
    assert bot.gateway.agent("s", CONFIG) is first
    assert bot.gateway.agent("t", CONFIG) is not first
    other = AgentConfig(**{**vars(CONFIG), "model": "m2"})
    assert bot.gateway.agent("s", other) is not first


def test_what_belongs_to_a_message_is_set_on_a_kept_agent(bot: Bot) -> None:
    heard: list[str] = []
    config = {**vars(CONFIG), "reasoning": "high"}
    bot.gateway.handle("s", "hi", CONFIG)
    bot.gateway.handle(
        "s", "hi", AgentConfig(**{**config, "callback": lambda event: heard.append(event.type)})
    )
    assert len(bot.made) == 1 and heard[-1] == "agent_end"
    assert bot.made[0].thinking_level == "high"
    count = len(heard)
    bot.gateway.handle("s", "hi", CONFIG)
    assert len(heard) == count


def test_a_key_is_in_no_representation() -> None:
    assert "AAAA" not in repr(CONFIG) + CONFIG.signature


def test_new_begins_the_session_anew_with_a_new_prompt(bot: Bot) -> None:
    bot.gateway.handle("s", "one", CONFIG)
    assert bot.gateway.handle("s", " /new ", CONFIG)["messages"] == []
    found = bot.gateway.handle("s", "two", CONFIG)
    assert [message["content"] for message in found["messages"]] == ["two", "seen 2"]
    assert len(bot.made) == 2


def test_a_fallback_that_took_over_makes_the_next_agent_new(bot: Bot) -> None:
    bot.gateway.handle("s", "one", CONFIG)
    bot.gateway.invalidate("s")
    bot.gateway.handle("s", "two", CONFIG)
    assert len(bot.made) == 2


def transcripts(folder: Path, messages: int, evict: Callable[[int], bool]) -> Any:
    """The transcript of a session that got so many messages, and how many agents that took."""
    bot = Bot(folder / f"{evict(1)}.db")
    found: Any = None
    for number in range(messages):
        found = bot.gateway.handle("s", f"message {number}", CONFIG)
        if evict(number):
            bot.gateway.invalidate("s")
            bot.made[-1].close()
    bot.close()
    return without_ids(found["messages"]), len(bot.made)


def same_whether_kept_or_not(folder: Path, messages: int) -> int:
    """S3-10: the agent is thrown away behind each message, or kept; gives the transcript's size."""
    kept, one = transcripts(folder, messages, lambda number: False)
    thrown_away, many = transcripts(folder, messages, lambda number: True)
    assert (one, many) == (1, messages)
    assert kept == thrown_away
    return len(kept)


def test_an_agent_that_is_thrown_away_behind_each_message_changes_nothing(tmp_path: Path) -> None:
    assert same_whether_kept_or_not(tmp_path, 12) == 12 * 2 + 4 * 2


def test_the_agent_used_longest_ago_goes_first(tmp_path: Path) -> None:
    bot = Bot(tmp_path / "t.db", most_kept=2)
    for session in ("a", "b", "a", "c", "a", "b"):
        bot.gateway.handle(session, "hi", CONFIG)
    bot.close()
    assert len(bot.made) == 4


def test_many_sessions_run_at_the_same_time(bot: Bot) -> None:
    found: dict[str, Any] = {}

    def serve(session: str) -> None:
        for number in range(3):
            found[session] = bot.gateway.handle(session, f"{session} {number}", CONFIG)

    threads = [threading.Thread(target=serve, args=(f"s{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bot.made) == 8
    for session, result in found.items():
        asked = [m["content"] for m in result["messages"] if m["role"] == "user"]
        assert asked == [f"{session} {number}" for number in range(3)]
