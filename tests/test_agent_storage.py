"""What an agent stores and finds again, alone and beside others, and what it cannot be made of."""

import asyncio
import re
from pathlib import Path

import pytest

from loopwright import Agent, Limits, Settings
from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    DatabaseError,
    UnknownModelError,
    UnknownThreadError,
)
from loopwright.testing import ScriptedModel
from tests.support.graphs import outline
from tests.support.providers import ScriptedProvider


@pytest.mark.anyio
async def test_threads_and_their_histories(tmp_path: Path) -> None:
    async with Agent(ScriptedModel(["one", "two", "three"]), database=tmp_path / "t.db") as agent:
        with pytest.raises(UnknownThreadError, match="'nowhere'"):
            agent.messages("nowhere")
        with pytest.raises(UnknownThreadError):
            agent.messages()
        for thread, words in (("a", "first thing"), ("b", "second"), ("a", "third")):
            await agent.prompt(words, thread=thread)
        threads = [(t.id, t.messages, t.title) for t in agent.threads()]
        assert threads == [("a", 4, "first thing"), ("b", 2, "second")]
        assert [t.id for t in agent.threads(limit=1)] == ["a"]


@pytest.mark.anyio
async def test_another_agent_on_the_file_goes_on_with_the_thread(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    async with Agent(ScriptedModel(["one"]), system_prompt="be brief", database=path) as agent:
        await agent.prompt("hi")
        thread = agent.thread
    provider = ScriptedProvider("two", "three")
    async with Agent(provider, database=path, thread=thread) as agent:
        await agent.prompt("again")
        assert provider.requests[0].system_prompt == "be brief"
        assert outline(agent.messages())[2:] == ["user: again", "assistant: two"]
    async with Agent(provider, system_prompt="", database=path, thread=thread) as agent:
        await agent.prompt("once more")
        assert provider.requests[1].system_prompt == ""


@pytest.mark.anyio
async def test_two_agents_on_one_file_share_its_threads_and_their_locks(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    one = Agent(ScriptedModel(["one", "one more"]), database=path, thread="t")
    two = Agent(ScriptedModel(["two"]), database=path, thread="t")
    async with one, two:
        run = one.prompt("hi")
        with pytest.raises(BusyThreadError):
            two.prompt("me too")
        both = await asyncio.gather(run, two.prompt("hi", thread="u"))
        assert {result.status for result in both} == {"completed"}
        assert outline(two.messages()) == ["user: hi", "assistant: one"]
        assert {info.id for info in one.threads()} == {"t", "u"}
        two.steer("by the way")
        assert (await one.prompt("again")).messages[1].text == "by the way"


def test_an_agent_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Agent(ScriptedModel(["one"])) as agent:
        agent.run("hi")
        assert len(agent.messages()) == 2
    assert not list(tmp_path.iterdir())


# ---- what an agent cannot be made of


def test_a_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "notes.txt" / "t.db"):
        with pytest.raises(DatabaseError, match=re.escape(repr(str(path)))):
            Agent(ScriptedModel([]), database=path)


def test_what_an_agent_is_given_is_checked_when_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a folder"):
        Agent(ScriptedModel([]), workspace=tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="is no tool"):
        Agent(ScriptedModel([]), tools=["add"])
    with pytest.raises(ConfigurationError, match=r"limits\.turns"):
        Agent(ScriptedModel([]), settings=Settings(limits=Limits(turns=0)))


@pytest.mark.anyio
async def test_an_unknown_model_is_told_when_a_run_starts_and_nothing_is_lost() -> None:
    async with Agent("nobody/nothing") as agent:
        with pytest.raises(UnknownModelError, match="nobody/nothing"):
            await agent.prompt("hi")
        agent.model = ScriptedModel(["fine"])
        assert (await agent.prompt("hi")).final_text == "fine"
        assert outline(agent.messages()) == ["user: hi", "assistant: fine"]
