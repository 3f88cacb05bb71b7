"""The planner document's five exercises and its acceptance points, by its own words."""

import asyncio
import io
import json
import signal as signals
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.presets.planner import (
    MAX_ITERATIONS,
    SETTINGS,
    TOKEN_BUDGET,
    AgentState,
    Deps,
    Harness,
    JsonLines,
    Observer,
    ToolExecutor,
    abort,
    create_initial_state,
    failed,
    is_error,
    run_agent_loop,
)
from loopwright.signals import AbortSignal
from loopwright.state.repair import INTERRUPTED
from loopwright.testing import Response, ScriptedModel
from loopwright.wording import Wording
from tests.ledgers import unhurried
from tests.support.planner import Echo, Noted, Script, calls, planner
from tests.support.processes import output, start

LOOPS: Script = [[("look", {"n": n})] for n in range(20)]


def initial() -> AgentState:
    return create_initial_state("session-1", "What is new?")


async def run(script: Script, **parts: Any) -> AgentState:
    deps = Deps(planner=planner(script), **{"tool_executor": Echo(), **parts})
    return await run_agent_loop(initial(), deps)


# ---- exercise 1: createInitialState, abort, MAX_ITERATIONS


def test_exercise_1_the_initial_state_is_plain_json_with_zeros() -> None:
    state = initial()
    assert json.loads(json.dumps(state)) == state
    assert [message["role"] for message in state["messages"]] == ["system", "user"]
    assert (state["toolResults"], state["iteration"], state["tokenUsed"]) == ([], 0, 0)
    assert state["status"] == "running" and "abortReason" not in state


def test_exercise_1_abort_gives_a_new_state() -> None:
    state = initial()
    aborted = abort(state, "MAX_ITERATIONS")
    assert (aborted["status"], aborted["abortReason"]) == ("aborted", "MAX_ITERATIONS")
    assert state == initial()


@pytest.mark.anyio
async def test_exercise_1_the_loop_ends_at_max_iterations() -> None:
    state = await run(LOOPS)
    assert (state["status"], state.get("abortReason")) == ("aborted", "MAX_ITERATIONS")
    assert (state["iteration"], len(state["toolResults"])) == (MAX_ITERATIONS, MAX_ITERATIONS)


@pytest.mark.anyio
async def test_exercise_1_a_state_at_its_limit_asks_no_planner() -> None:
    def never(state: AgentState) -> Any:
        raise AssertionError("asked")

    state = await run_agent_loop({**initial(), "iteration": 12}, Deps(planner=never))
    assert (state["status"], state.get("abortReason")) == ("aborted", "MAX_ITERATIONS")


# ---- exercise 2: rounds of calls, then a stop


@pytest.mark.anyio
async def test_exercise_2_two_rounds_of_calls_then_a_stop() -> None:
    state = await run([[("a", {}), ("b", {})], [("c", {})], "stop", "stop", "stop"])
    assert (state["status"], state["iteration"], len(state["toolResults"])) == ("done", 3, 3)
    assert state["toolResults"][0] == {
        "callId": "call-0-0",
        "name": "a",
        "output": {"of": {}, "in": "session-1"},
    }
    assert state["tokenUsed"] == 300
    roles = [message["role"] for message in state["messages"]]
    assert roles == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


# ---- exercise 3: a timeout in the executor


@pytest.mark.anyio
async def test_exercise_3_a_timeout_is_an_error_in_the_messages() -> None:
    async def slow() -> None:
        """Never answers."""
        await asyncio.Event().wait()

    executor = ToolExecutor([slow], timeout=0.01)
    state = await run([[("slow", {})], "It took too long."], tool_executor=executor)
    (message,) = [m for m in state["messages"] if m["role"] == "tool"]
    output = json.loads(message["content"])
    assert output["error"] is True and "longer than 0.01 seconds" in output["message"]
    assert set(output) == {"error", "message"}
    assert state["toolResults"][0]["output"] == output
    assert state["status"] == "done"


# ---- exercise 4: a checkpoint, and no side effect twice


@pytest.mark.anyio
async def test_exercise_4_a_session_goes_on_from_the_json_of_every_step() -> None:
    script: Script = [*LOOPS[:5], "Done."]
    noted = Noted()
    whole = await run(script, observer=Observer(checkpoint=noted, every=1))
    assert len(noted.states) == 5
    for at in range(5):
        kept = noted.load(at)
        assert json.loads(json.dumps(kept)) == kept
        executor = Echo()
        resumed = await run_agent_loop(kept, Deps(planner=planner(script), tool_executor=executor))
        assert resumed == whole
        assert len(executor.executed) == 4 - at


@pytest.mark.anyio
async def test_exercise_4_a_call_with_an_unknown_effect_is_told_and_not_run_again() -> None:
    state = initial()
    made = calls(0, [("send_mail", {"to": "a@example.org"})])
    state["messages"].append({"role": "assistant", "content": "", "tool_calls": made})
    state["iteration"] = 1
    executor = Echo()
    ended = await run_agent_loop(
        state, Deps(planner=planner(["-", "I do not know."]), tool_executor=executor)
    )
    assert (ended["status"], executor.executed) == ("done", [])
    told = json.loads(ended["messages"][3]["content"])
    assert is_error(told) and told["message"] == INTERRUPTED


DIES = """
import asyncio, os, signal, sys
from loopwright.presets.planner import Deps, create_initial_state, run_agent_loop
from tests.support.planner import planner

folder, dies = sys.argv[1], sys.argv[2] == "dies"

class Mail:
    async def execute(self, call, ctx):
        with open(folder + "/sent", "a") as file:
            file.write(call["id"] + "\\n")
        return "sent"

def plan(state):
    if dies and state["iteration"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return planner([[("send_mail", {})], "Sent."])(state)

deps = Deps(planner=plan, tool_executor=Mail())
state = asyncio.run(
    run_agent_loop(create_initial_state("s", "Write."), deps, database=folder + "/sessions.db")
)
print(state["status"], state["iteration"], state["tokenUsed"], len(state["toolResults"]))
"""


def test_exercise_4_a_killed_session_goes_on_and_its_mail_is_sent_once(tmp_path: Path) -> None:
    with start(DIES, tmp_path, "dies") as process:
        process.communicate(timeout=60)
    assert process.returncode == -signals.SIGKILL
    assert output(DIES, tmp_path, "lives") == "done 2 200 1"
    assert (tmp_path / "sent").read_text() == "call-0-0\n"


# ---- exercise 5: a structured trace


@pytest.mark.anyio
async def test_exercise_5_every_step_is_one_line_of_json() -> None:
    stream = io.StringIO()
    await run([[("a", {}), ("b", {})], [("c", {})], "Done."], trace=JsonLines(stream))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    steps = [line for line in lines if line["type"] == "step"]
    assert [(s["sessionId"], s["step"], s["toolCount"], s["tools"]) for s in steps] == [
        ("session-1", 1, 2, ["a", "b"]),
        ("session-1", 2, 3, ["c"]),
        ("session-1", 3, 3, []),
    ]
    assert lines[-1]["type"] == "end" and lines[-1]["status"] == "done"
    assert len(lines) == len(steps) + 1


@pytest.mark.anyio
async def test_exercise_5_the_trace_says_what_ended_the_run() -> None:
    noted = Noted()
    await run(LOOPS, trace=noted)
    assert noted.records[-1]["abortReason"] == "MAX_ITERATIONS"


# ---- limits, repeats, the budget


@pytest.mark.anyio
async def test_a_repeated_action_is_not_executed_and_its_call_is_closed() -> None:
    executor = Echo()
    script: Script = [[("a", {"x": 1, "y": 2})], [("a", '{ "y": 2, "x": 1 }'), ("b", {})]]
    state = await run(script, tool_executor=executor)
    assert (state["status"], state.get("abortReason")) == ("aborted", "REPEATED_ACTION")
    assert executor.executed == ["call-0-0"]
    assert len(state["toolResults"]) == 1
    closed = [json.loads(m["content"]) for m in state["messages"] if m["role"] == "tool"][1:]
    assert len(closed) == 2 and all(is_error(output) for output in closed)


@pytest.mark.anyio
async def test_the_budget_is_noted_once_and_counts_what_a_state_has_used() -> None:
    state = {**initial(), "tokenUsed": TOKEN_BUDGET - 100}
    deps = Deps(planner=planner([[("a", {})], "Then so."]), tool_executor=Echo())
    ended = await run_agent_loop(cast(AgentState, state), deps)
    assert (ended["status"], ended["tokenUsed"]) == ("done", TOKEN_BUDGET + 100)
    assert [m["content"] for m in ended["messages"] if m["role"] == "system"][1:] == [
        Wording().conclude
    ]
    over = await run_agent_loop(
        cast(AgentState, {**initial(), "tokenUsed": TOKEN_BUDGET}),
        Deps(planner=planner([[("a", {})]]), tool_executor=Echo()),
    )
    assert over.get("abortReason") == "TOKEN_BUDGET" and over["toolResults"] == []


@pytest.mark.anyio
async def test_a_model_is_asked_directly_and_loses_its_tools_at_the_budget() -> None:
    def look(n: int) -> int:
        """Look."""
        return n

    usage = {"input_tokens": TOKEN_BUDGET, "output_tokens": 0}
    model = ScriptedModel([Response(calls=[("c1", "look", {"n": 1})], usage=usage), "Enough."])
    deps = Deps(planner=model, tool_executor=ToolExecutor([look]))
    state = await run_agent_loop(initial(), deps)
    assert (state["status"], state["toolResults"][0]["output"]) == ("done", "1")
    assert [request.tool_names for request in model.requests] == [["look"], []]
    assert Wording().conclude in str(model.requests[1].messages[-1].content)


# ---- plan and act


@pytest.mark.anyio
async def test_the_plan_is_in_the_state_and_in_the_planner_s_system_message() -> None:
    seen: list[AgentState] = []
    script = planner([[("a", {})], "[Step 1 done] [Step 2 done]"])

    def watched(state: AgentState) -> Any:
        seen.append(state)
        return script(state)

    deps = Deps(
        planner=watched,
        tool_executor=Echo(),
        generate_plan=lambda query: f"1. 搜索文档: {query}\n2. 输出结论",
    )
    state = await run_agent_loop(initial(), deps)
    assert "1. 搜索文档: What is new?\n2. 输出结论" in seen[0]["messages"][0]["content"]
    assert state.get("plan") == "1. 搜索文档: What is new? (done)\n2. 输出结论 (done)"
    assert "搜索文档" not in state["messages"][0]["content"]


@pytest.mark.anyio
async def test_another_model_makes_the_plan() -> None:
    thinker = ScriptedModel(
        [Response(calls=[("p1", "plan", {"steps": ["look", "tell"]})])], model_name="thinker"
    )
    actor = ScriptedModel(["[Step 1 done] Told."], model_name="actor")
    state = await run_agent_loop(initial(), Deps(planner=actor, plan_model=thinker))
    assert (state["status"], state["iteration"]) == ("done", 2)
    assert state.get("plan") == "1. look (done)\n2. tell"
    assert thinker.requests[0].tool_names == ["plan"]
    assert "1. look\n2. tell" in str(actor.requests[0].messages[0].content)


@pytest.mark.anyio
async def test_an_observer_may_replan_but_not_for_ever() -> None:
    numbers = iter(range(99))

    def replan(state: AgentState) -> AgentState:
        return cast(AgentState, {**state, "plan": f"step {next(numbers)}"})

    state = await run(LOOPS, observer=replan, generate_plan=lambda query: "look")
    assert (state["status"], state.get("abortReason")) == ("aborted", "TOO_MANY_REVISIONS")
    assert state.get("plan") == "1. step 8"


@pytest.mark.anyio
async def test_an_observer_may_end_the_session() -> None:
    state = await run(LOOPS, observer=lambda state: abort(state, "ENOUGH"))
    assert (state["status"], state.get("abortReason"), state["iteration"]) == (
        "aborted",
        "ENOUGH",
        1,
    )


# ---- the tests that the document asks for


@unhurried
@given(st.lists(st.sampled_from(["ok", "raises", "hangs"]), min_size=1, max_size=6))
@pytest.mark.anyio
async def test_chaos_tools_that_fail_at_random_leave_a_session_whole(fates: list[str]) -> None:
    async def act(n: int) -> str:
        """Act."""
        if fates[n] == "hangs":
            await asyncio.Event().wait()
        if fates[n] == "raises":
            raise RuntimeError("it broke")
        return "ok"

    script: Script = [*([("act", {"n": n})] for n in range(len(fates))), "I did what I could."]
    state = await run(script, tool_executor=ToolExecutor([act], timeout=0.005))
    assert state["status"] == "done"
    outputs = [result["output"] for result in state["toolResults"]]
    assert [is_error(output) for output in outputs] == [fate != "ok" for fate in fates]


@pytest.mark.anyio
@pytest.mark.parametrize("script", [[*LOOPS[:4], "Done."], LOOPS, [*LOOPS[:3], LOOPS[0]]])
async def test_golden_a_recorded_session_replays_to_the_same_end(script: Script) -> None:
    recorded = await run(script)
    answers = [m for m in recorded["messages"] if m["role"] == "assistant"]

    def replay(state: AgentState) -> Any:
        return {"message": answers[state["iteration"]], "usage": {"totalTokens": 100}}

    again = await run_agent_loop(initial(), Deps(planner=replay, tool_executor=Echo()))
    assert (again["status"], again.get("abortReason")) == (
        recorded["status"],
        recorded.get("abortReason"),
    )
    assert again == recorded


@pytest.mark.anyio
async def test_a_cancelled_session_says_so_and_can_be_gone_on_from() -> None:
    signal = AbortSignal()

    async def hangs(state: AgentState) -> Any:
        signal.abort()
        await asyncio.Event().wait()

    state = await run_agent_loop(initial(), Deps(planner=hangs), signal=signal)
    assert (state["status"], state.get("abortReason"), state["iteration"]) == (
        "aborted",
        "CANCELLED",
        0,
    )
    resumed = await run_agent_loop({**state, "status": "running"}, Deps(planner=planner(["Here."])))
    assert resumed["status"] == "done"


@pytest.mark.anyio
async def test_a_planner_that_fails_ends_the_session_with_its_words() -> None:
    def broken(state: AgentState) -> Any:
        raise RuntimeError("no such model")

    state = await run_agent_loop(initial(), Deps(planner=broken))
    assert (state["status"], state.get("abortReason")) == ("aborted", "FAILED: no such model")
    assert state["messages"] == initial()["messages"]


@pytest.mark.anyio
async def test_a_session_that_is_over_stays_as_it_is() -> None:
    for status in ("done", "aborted"):
        state = cast(AgentState, {**initial(), "status": status})
        assert await run_agent_loop(state, Deps(planner=planner([]))) is state


@pytest.mark.anyio
async def test_independent_calls_may_run_together() -> None:
    met = asyncio.Barrier(2)

    async def meet(n: int) -> str:
        """Wait for the other."""
        async with asyncio.timeout(10):
            await met.wait()
        return "met"

    deps = Deps(
        planner=planner([[("meet", {"n": 1}), ("meet", {"n": 2})], "Done."]),
        tool_executor=ToolExecutor([meet]),
    )
    settings = replace(SETTINGS, tool_execution="parallel")
    state = await run_agent_loop(initial(), deps, settings=settings)
    assert [result["output"] for result in state["toolResults"]] == ["met", "met"]


# ---- the executor by itself


def call(name: str, arguments: Any) -> dict[str, Any]:
    return calls(0, [(name, arguments)])[0]


CTX = {"sessionId": "session-1"}


def double(n: int) -> dict[str, int]:
    """Twice a number."""
    return {"twice": 2 * n}


@pytest.mark.anyio
async def test_a_tool_gives_its_value_and_is_called_between_the_hooks() -> None:
    seen: list[str] = []
    harness = Harness(
        before_tool_call=lambda call, ctx: seen.append(f"before {ctx['sessionId']}"),
        assert_permission=lambda tool, ctx: seen.append(f"may {tool.name}"),
        after_tool_call=lambda call, output, ctx: seen.append(f"after {output}"),
    )
    executor = ToolExecutor([double], harness)
    assert await executor.execute(call("double", {"n": 2}), CTX) == {"twice": 4}
    assert seen == ["before session-1", "may double", "after {'twice': 4}"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (call("missing", {}), "Tool missing not found"),
        (call("double", "{"), "Expecting property name"),
        (call("double", {"n": "many"}), "n"),
    ],
)
async def test_what_keeps_a_call_from_running_is_its_output(
    made: dict[str, Any], message: str
) -> None:
    output = await ToolExecutor([double]).execute(made, CTX)
    assert is_error(output) and message in output["message"]


@pytest.mark.anyio
async def test_a_permission_that_is_refused_is_an_output_and_the_tool_does_not_run() -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError("not allowed")

    ran: list[int] = []

    def act(n: int) -> None:
        """Act."""
        ran.append(n)

    for harness in (Harness(assert_permission=refuse), Harness(before_tool_call=refuse)):
        output = await ToolExecutor([act], harness).execute(call("act", {"n": 1}), CTX)
        assert output == failed("not allowed")
    assert ran == []


@pytest.mark.anyio
async def test_arguments_that_are_no_json_are_a_result_and_the_session_goes_on() -> None:
    state = await run([[("double", '{"n": ')], "Sorry."], tool_executor=ToolExecutor([double]))
    (result,) = state["toolResults"]
    assert state["status"] == "done" and is_error(result["output"])


# ---- the observer by itself


def test_the_observer_measures_traces_and_exports_every_third_state() -> None:
    noted = Noted()
    observe = Observer(metrics=noted, trace=noted, checkpoint=noted)
    for iteration in range(1, 8):
        state = cast(AgentState, {**initial(), "iteration": iteration})
        assert observe(state) is state
    assert noted.gauges == [("agent.iteration", n) for n in range(1, 8)]
    assert noted.records[0] == {"sessionId": "session-1", "step": 1, "toolCount": 0}
    assert [json.loads(text)["iteration"] for text in noted.states] == [3, 6]
    assert Observer()(initial()) == initial()
