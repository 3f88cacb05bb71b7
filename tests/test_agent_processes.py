"""Agents and processes: kills, forks, exits without closing, aborts from elsewhere."""

import signal
from pathlib import Path

from loopwright import Agent, tool
from loopwright.testing import ScriptedModel
from tests.support.graphs import on, outline, told
from tests.support.processes import output, start

KILLED = """
    import sys, threading
    from loopwright import Agent, Settings
    from loopwright.testing import Response, ScriptedModel

    def done() -> str:
        "Be done at once."
        return "done"

    def wait() -> str:
        "Never return."
        print("waiting", flush=True)
        threading.Event().wait()
        return ""

    calls = Response(text="I work.", calls=[("c1", "done", {{}}), ("c2", "wait", {{}})])
    one_by_one = Settings(tool_execution="sequential")
    agent = Agent(
        ScriptedModel([calls]), [done, wait], database=sys.argv[1], thread="t", settings=one_by_one
    )
    agent.{call}
"""


def killed_in_a_tool(path: Path, call: str = 'run("hi")') -> None:
    with start(KILLED.format(call=call), path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGKILL)


def test_a_kill_in_a_tool_leaves_the_answer_stored_and_the_next_prompt_mends_visibly(
    tmp_path: Path,
) -> None:
    killed_in_a_tool(tmp_path / "t.db")
    with Agent(ScriptedModel(["fine"]), database=tmp_path / "t.db", thread="t") as agent:
        assert outline(agent.messages()) == ["user: hi", "assistant: I work. [c1 c2]"]
        assert [info.id for info in agent.threads()] == ["t"]
        events = list(agent.graph.stream({"messages": "again"}, on("t"), stream_mode="custom"))
        assert told(events)[:3] == ["agent_start", "repair", "turn_start"]
        assert events[0].resumed_from
        assert (events[1].report["recovered"], events[1].report["synthesized"]) == (1, 1)
        assert outline(agent.messages())[-1] == "assistant: fine"
        assert [m.status for m in agent.messages()[2:4]] == ["success", "error"]  # type: ignore[union-attr]


def test_a_killed_run_may_be_resumed_instead(tmp_path: Path) -> None:
    killed_in_a_tool(tmp_path / "t.db")

    def done() -> str:
        """Be done at once."""
        return "done"

    @tool(effects="idempotent")
    def wait() -> str:
        """Return this time."""
        return "waited"

    model = ScriptedModel(["fine"])
    with Agent(model, [done, wait], database=tmp_path / "t.db", thread="t") as agent:
        events = list(agent.graph.stream(None, on("t"), stream_mode="custom"))
        assert events[0].resumed_from and told(events)[1] == "tool_execution_start c1"
        assert outline(agent.messages())[2:] == ["c1: done", "c2: waited", "assistant: fine"]


def test_a_kill_is_survived_whatever_durability_a_caller_of_the_graph_asks_for(
    tmp_path: Path,
) -> None:
    config = '{"configurable": {"thread_id": "t"}}'
    call = f'graph.invoke({{"messages": "hi"}}, {config}, durability="exit")'
    killed_in_a_tool(tmp_path / "t.db", call)
    with Agent(ScriptedModel([]), database=tmp_path / "t.db", thread="t") as agent:
        assert outline(agent.messages()) == ["user: hi", "assistant: I work. [c1 c2]"]


def test_a_forked_child_uses_the_same_agent_and_its_parent_goes_on(tmp_path: Path) -> None:
    script = """
        import os, sys
        from loopwright import Agent, tool
        from loopwright.testing import ScriptedModel

        with Agent(ScriptedModel(["one", "two", "three"]), database=sys.argv[1]) as agent:
            agent.run("before", thread="parent")
            child = os.fork()
            if child == 0:
                assert len(agent.messages("parent")) == 2
                assert agent.run("in the child", thread="child").status == "completed"
                agent.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert agent.run("after", thread="parent").status == "completed"
            print(len(agent.messages("parent")), len(agent.messages("child")))
    """
    assert output(script, tmp_path / "t.db") == "4 2"


def test_a_forked_child_of_an_agent_in_memory_has_its_own_copy() -> None:
    script = """
        import os
        from loopwright import Agent, tool
        from loopwright.testing import ScriptedModel

        with Agent(ScriptedModel(["one", "two"])) as agent:
            agent.run("before")
            child = os.fork()
            result = agent.run("child" if child == 0 else "parent")
            if child == 0:
                os._exit(len(agent.messages()) != 4)
            print(os.waitpid(child, 0)[1], agent.messages()[2].text)
    """
    assert output(script) == "0 parent"


ENDINGS = ["agent.close()", "asyncio.run(agent.aclose())", "del agent; gc.collect()", ""]


def test_no_way_to_end_a_program_warns_about_what_was_left_open(tmp_path: Path) -> None:
    script = """
        import asyncio, gc, os, sys
        from loopwright import Agent, tool
        from loopwright.testing import Response, ScriptedModel

        async def look() -> str:
            "Look."
            return "seen"

        for ending in sys.argv[2:]:
            child = os.fork()  # before there is an agent: the same as a program of its own
            if child == 0:
                calls = Response(calls=[("c1", "look", {})])
                model = ScriptedModel([calls, "one", "two"])
                agent = Agent(model, [look], database=sys.argv[1])
                agent.run("hi")
                asyncio.run(agent.graph.ainvoke({"messages": "again"}))
                exec(ending)
                break
            assert os.waitpid(child, 0)[1] == 0, ending
        else:
            print("done")
    """
    assert output(script, tmp_path / "t.db", *ENDINGS, PYTHONDEVMODE="1") == "done"


def test_a_run_that_is_left_behind_by_its_loop_ends_without_a_warning(tmp_path: Path) -> None:
    script = """
        import asyncio, sys
        from loopwright import Agent, tool
        from loopwright.testing import Gate, Response, ScriptedModel

        async def main() -> None:
            run = agent.prompt("hi")
            await gate.reached()

        gate = Gate()
        agent = Agent(ScriptedModel([Response(text="x", wait_for=gate)]), database=sys.argv[1])
        asyncio.run(main())
        print(len(agent.messages(agent.thread)))
        agent.close()
    """
    assert output(script, tmp_path / "t.db") == "1"


def test_another_process_steers_and_aborts_a_run(tmp_path: Path) -> None:
    script = """
        import sys
        from loopwright import Agent, ToolContext
        from loopwright.testing import Response, ScriptedModel

        async def wait(context: ToolContext) -> str:
            "Wait until the run is cancelled."
            print("waiting", flush=True)
            await context.signal.wait()
            return "stopped"

        calls = Response(text="I work.", calls=[("c1", "wait", {})])
        with Agent(ScriptedModel([calls]), [wait], database=sys.argv[1], thread="t") as agent:
            print(agent.run("hi").status)
    """
    with start(script, tmp_path / "t.db") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "waiting\n"
        with Agent(ScriptedModel([]), database=tmp_path / "t.db", thread="t") as agent:
            agent.steer("by the way")
            agent.request_abort()
            assert process.stdout.readline() == "cancelled\n"
            assert process.wait(60) == 0
            assert process.stderr.read() == ""
            assert outline(agent.messages())[2:4] == ["c1: stopped", "user: by the way"]
