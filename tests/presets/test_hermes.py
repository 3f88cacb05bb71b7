"""The document of Hermes' loop, statement by statement: its minimal loop, its examples, its
mistakes of beginners. What the gateway does is in `test_hermes_gateway`.
"""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import SystemMessage

from loopwright import Agent, BusyThreadError, NestedCallError
from loopwright.presets.hermes import (
    LIMIT_REACHED,
    MAX_ITERATIONS,
    HermesAgent,
    prompt_from,
    run_conversation,
)
from loopwright.settings import Limits, Settings
from loopwright.testing import OpenAIServer, Response, ScriptedModel


def read_file(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


def web_search(query: str) -> str:
    """Search the web."""
    return f"{query} introduces..."


def asks(id: str, name: str, **arguments: Any) -> Response:
    return Response(calls=[(id, name, arguments)])


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


# ---- run_conversation


def test_it_runs_until_no_tool_is_called_and_returns_response_and_history() -> None:
    script: list[Any] = [
        asks("1", "read_file", path="a.py"),
        asks("2", "read_file", path="test_a.py"),
        asks("3", "read_file", path="a.py"),
        "Done",
    ]
    found = run_conversation(
        "Refactor this file for me", model=ScriptedModel(script), tools=[read_file]
    )
    assert found["final_response"] == "Done"
    assert roles(found["messages"]) == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert (found["api_calls"], MAX_ITERATIONS - found["api_calls"]) == (4, 86)


def test_it_is_a_plain_function_without_terminal_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert not asyncio.iscoroutinefunction(HermesAgent.run_conversation)
    run_conversation("hi", model=ScriptedModel(["hello"]))
    assert capfd.readouterr() == ("", "")


def test_a_given_history_is_gone_on_from() -> None:
    first = run_conversation("My name is Ada.", model=ScriptedModel(["Hello Ada."]))
    model = ScriptedModel(["Ada."])
    second = run_conversation("What is my name?", first["messages"], model=model)
    assert roles(second["messages"]) == ["user", "assistant", "user", "assistant"]
    assert second["messages"][:2] == first["messages"]
    assert [m.content for m in model.requests[0].messages][:2] == ["My name is Ada.", "Hello Ada."]


def test_a_history_that_is_the_stored_one_rewrites_nothing(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    with HermesAgent(ScriptedModel(["one", "two", "three"]), database=database) as agent:
        known = agent.run_conversation("a")["messages"]
        before = [message.id for message in agent.messages()]
        known = agent.run_conversation("b", known)["messages"]
        assert [message.id for message in agent.messages()][:2] == before
        found = agent.run_conversation("c", known[:2])
        assert [m["content"] for m in found["messages"]] == ["a", "one", "c", "three"]


# ---- the budget of iterations


def test_ninety_iterations_are_the_default() -> None:
    model = ScriptedModel(asks(f"c{n}", "read_file", path=f"{n}") for n in range(200))
    found = run_conversation("go on for ever", model=model, tools=[read_file])
    assert len(model.requests) == found["api_calls"] == MAX_ITERATIONS == 90


def test_at_the_limit_a_text_says_so_and_all_messages_are_there() -> None:
    model = ScriptedModel([asks("1", "read_file", path="a"), asks("2", "read_file", path="b")])
    found = run_conversation("hi", model=model, tools=[read_file], max_iterations=2)
    assert found["final_response"] == LIMIT_REACHED == "Reached maximum iteration count"
    assert roles(found["messages"]) == ["user", *["assistant", "tool"] * 2]
    assert (found["completed"], found["reason"]) == (False, "max_turns")
    assert len(model.requests) == 2, "no further call"


def test_one_answer_without_tools_may_be_given_at_the_limit() -> None:
    heard: list[str] = []
    model = ScriptedModel([asks("1", "read_file", path="a"), "I read a."])
    settings = Settings(limits=Limits(last_answer=True))
    with HermesAgent(model, [read_file], max_iterations=1, settings=settings) as agent:
        agent.callback = lambda event: heard.append(event.type)
        found = agent.run_conversation("hi")
    assert (found["final_response"], found["reason"]) == ("I read a.", "max_turns")
    assert found["api_calls"] == 2, "it is counted"
    assert "budget" in heard, "it is announced"
    assert model.requests[1].tool_names == []


# ---- finish_reason


def test_text_that_was_cut_off_is_continued_within_bounds() -> None:
    cut = Response(text="one ", stop="length")
    found = run_conversation("count", model=ScriptedModel([cut, "two"]))
    assert found["final_response"] == "one two"
    assert [m["role"] for m in found["messages"]] == ["user", "assistant", "system", "assistant"]
    assert "Go on exactly where it ended" in found["messages"][2]["content"]
    endless = ScriptedModel([cut] * 9)
    assert run_conversation("count", model=endless)["final_response"] == "one " * 4
    assert len(endless.requests) == 4
    at_limit = ScriptedModel([cut] * 9)
    run_conversation("count", model=at_limit, max_iterations=2)
    assert len(at_limit.requests) == 2


def test_calls_of_an_answer_that_was_cut_off_never_run() -> None:
    ran: list[str] = []

    def write(text: str) -> str:
        """Write."""
        ran.append(text)
        return "ok"

    cut = Response(calls=[("1", "write", {"text": "half"})], stop="length")
    found = run_conversation("hi", model=ScriptedModel([cut, "sorry"]), tools=[write])
    assert ran == [] and "cut off" in found["messages"][2]["content"]


# ---- messages and api_messages


def test_internal_fields_are_kept_in_the_ledger_and_never_sent() -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "What's the weather today?"},
        {
            "role": "assistant",
            "content": "Let me check",
            "reasoning": "User asked about weather, I should call a tool",
            "_internal_token_count": 42,
        },
    ]
    with OpenAIServer([Response(text="Sunny.")]) as server:
        found = run_conversation(
            "And now?",
            history,
            model="anthropic/claude-sonnet-4",
            system_prompt="You are Hermes...",
            base_url=server.base_url,
            api_key="key-1",
        )
        (request,) = server.requests
    assert request.body["messages"] == [
        {"role": "system", "content": "You are Hermes..."},
        {"role": "user", "content": "What's the weather today?"},
        {"role": "assistant", "content": "Let me check"},
        {"role": "user", "content": "And now?"},
    ]
    assert request.body["model"] == "anthropic/claude-sonnet-4"
    assert request.headers["authorization"] == "Bearer key-1"
    kept = found["messages"][1]
    assert kept["reasoning"] == "User asked about weather, I should call a tool"
    assert kept["_internal_token_count"] == 42


def test_the_reasoning_of_a_model_is_an_internal_field() -> None:
    model = ScriptedModel([Response(text="Sunny.", thinking="I look outside."), "Still."])
    with HermesAgent(model) as agent:
        found = agent.run_conversation("weather?")
        agent.run_conversation("and now?")
    assert found["messages"][-1]["reasoning"] == "I look outside."
    assert "outside" not in str(model.requests[1].messages)


# ---- messages in OpenAI's form


def test_every_result_is_bound_to_its_call() -> None:
    both = Response(
        calls=[
            ("call_abc", "web_search", {"query": "Python 3.12"}),
            ("call_def", "read_file", {"path": "a"}),
        ]
    )
    tools = [web_search, read_file]
    found = run_conversation("what's new?", model=ScriptedModel([both, "this"]), tools=tools)
    user, assistant, first, second, _ = found["messages"]
    assert user["role"] == "user" and user["content"] == "what's new?"
    assert assistant["content"] is None
    call = assistant["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("call_abc", "web_search")
    assert json.loads(call["function"]["arguments"]) == {"query": "Python 3.12"}
    assert (first["role"], first["tool_call_id"]) == ("tool", "call_abc")
    assert first["content"] == "Python 3.12 introduces..."
    assert second["tool_call_id"] == "call_def"


def test_the_answer_is_written_back_before_its_results_are_sent() -> None:
    model = ScriptedModel([asks("1", "read_file", path="a"), "done"])
    run_conversation("hi", model=model, tools=[read_file])
    assert [m.type for m in model.requests[1].messages] == ["human", "ai", "tool"]


def test_broken_arguments_never_run_and_are_shown_in_the_ledger() -> None:
    script: list[Any] = [Response(calls=[("1", "read_file", '{"path": ')]), "sorry"]
    found = run_conversation("hi", model=ScriptedModel(script), tools=[read_file])
    assert found["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"path": '
    assert "Not executed" in found["messages"][2]["content"]


# ---- the system prompt


def test_the_system_prompt_is_in_every_request_and_in_no_history() -> None:
    model = ScriptedModel([asks("1", "read_file", path="a"), "done"])
    found = run_conversation("hi", model=model, tools=[read_file], system_prompt="You are Hermes.")
    for request in model.requests:
        assert request.messages[0] == SystemMessage("You are Hermes.")
        assert sum(isinstance(m, SystemMessage) for m in request.messages) == 1
    assert "system" not in roles(found["messages"])


def test_the_prompt_is_assembled_once_and_then_read_from_the_database(tmp_path: Path) -> None:
    for name, text in (("SOUL.md", "You are Hermes."), ("MEMORY.md", "The user likes tea.")):
        (tmp_path / name).write_text(text)
    sent: list[Any] = []

    def converse(session: str, message: str) -> None:
        model = ScriptedModel(["ok"])
        database = tmp_path / "t.db"
        prompt = prompt_from(tmp_path)
        with HermesAgent(model, (), prompt, session=session, database=database) as agent:
            agent.run_conversation(message)
        sent.append(model.requests[0].messages[0].content)

    converse("a", "hi")
    (tmp_path / "MEMORY.md").write_text("The user likes coffee.")
    (tmp_path / "HERMES.md").write_text("Use tabs.")
    converse("a", "hi again")
    converse("b", "hi")
    assert sent[0] == sent[1] == "You are Hermes.\n\nThe user likes tea."
    assert sent[2] == "You are Hermes.\n\nThe user likes coffee.\n\nUse tabs."


# ---- a synchronous loop with asynchronous tools


class Client:
    """An async client that works in the event loop only in which it was opened."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = asyncio.Event()

    async def fetch(self, n: int) -> str:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        return f"page {n}"


def browser() -> Any:
    opened: list[Client] = []

    async def browse(n: int) -> str:
        """Open a page."""
        if not opened:
            opened.append(Client())
        return await opened[0].fetch(n)

    return browse


def test_an_async_client_of_the_first_call_works_in_the_second() -> None:
    browse = browser()
    for n in range(2):
        model = ScriptedModel([asks("1", "browse", n=n), "done"])
        found = run_conversation("look", model=model, tools=[browse, read_file])
        assert found["messages"][2]["content"] == f"page {n}"


@pytest.mark.anyio
async def test_it_works_inside_a_running_event_loop() -> None:
    browse = browser()
    for n in range(2):
        model = ScriptedModel([asks("1", "browse", n=n), "done"])
        assert run_conversation("look", model=model, tools=[browse])["final_response"] == "done"


def test_a_tool_that_would_block_the_loop_it_runs_in_is_told() -> None:
    inner = HermesAgent(ScriptedModel(["never"]))

    async def delegate() -> str:
        """Delegate."""
        return inner.run_conversation("hi")["final_response"]

    model = ScriptedModel([asks("1", "delegate"), "done"])
    found = run_conversation("hi", model=model, tools=[delegate])
    inner.close()
    assert "blocking call" in found["messages"][2]["content"]
    assert issubclass(NestedCallError, Exception)


def test_a_sync_tool_may_delegate_to_an_agent_of_its_own() -> None:
    def delegate(task: str) -> str:
        """Delegate."""
        return run_conversation(task, model=ScriptedModel(["found"]))["final_response"]

    model = ScriptedModel([asks("1", "delegate", task="search"), "done"])
    found = run_conversation("hi", model=model, tools=[delegate])
    assert found["messages"][2]["content"] == "found"


# ---- what may end a run


def test_a_failure_and_a_cancel_are_told() -> None:
    model = ScriptedModel([ConnectionError("no route")])
    failed = run_conversation("hi", model=model, settings=Settings(retries=0))
    assert failed["final_response"] == "No answer: no route"
    assert (failed["completed"], failed["reason"]) == (False, "model_error")

    def stop() -> str:
        """Stop the run."""
        agent.abort()
        return "stopping"

    with HermesAgent(ScriptedModel([asks("1", "stop"), "never"]), [stop]) as agent:
        found = agent.run_conversation("hi")
    assert (found["completed"], found["reason"]) == (False, "aborted")


def test_one_run_at_a_time_works_on_a_session() -> None:
    inside, go = threading.Event(), threading.Event()

    def hold() -> str:
        """Hold the run up."""
        inside.set()
        go.wait(60)
        return "held"

    with HermesAgent(ScriptedModel([asks("1", "hold"), "one"]), [hold]) as agent:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(agent.run_conversation("a")))
        thread.start()
        assert inside.wait(60)
        with pytest.raises(BusyThreadError):
            agent.run_conversation("b")
        go.set()
        thread.join()
    assert results[0]["final_response"] == "one"


def test_the_same_loop_serves_a_plain_agent(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    with HermesAgent(ScriptedModel(["one"]), session="s", database=database) as hermes:
        hermes.run_conversation("a")
    with Agent(ScriptedModel(["two"]), thread="s", database=database) as agent:
        agent.run("b")
        assert [str(message.text) for message in agent.messages()] == ["a", "one", "b", "two"]
