"""LangSmith tracing, which sends content out, is off whatever LangSmith's own variables say."""

import pytest

from tests.support.processes import start

SCRIPT = """
    import asyncio, os
    from langgraph.config import get_config
    from tests.support.graphs import on, rig
    from tests.support.providers import said

    def look() -> str:
        "Look at the callback handlers of this run."
        handlers.update(type(h).__name__ for h in get_config()["callbacks"].handlers)
        return "seen"

    handlers = set()
    made = rig(said("", ("c1", "look", {{}})), "done", tools=[look], tracing={tracing})
    asyncio.run(made.graph.ainvoke({{"messages": "hi"}}, on("t")))
    print("LangChainTracer" in handlers, flush=True)
    os._exit(0)  # a tracer would try for long to reach its server
"""
VARIABLES = {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_API_KEY": "none",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
}


@pytest.mark.parametrize("tracing", [False, True])
def test_a_tracer_is_attached_only_if_our_own_setting_says_so(tracing: bool) -> None:
    with start(SCRIPT.format(tracing=tracing), **VARIABLES) as process:
        # What a tracer says on stderr about its missing server depends on how soon it tries.
        said, _ = process.communicate(timeout=60)
    assert said.strip() == str(tracing)
