"""Under langchain's agent: siblings of a killed call, and a message that is edited in place."""

import signal
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware

from tests.drop_in.agents import converse, history, langchain_agent
from tests.support.processes import output, start
from tests.support.savers import Opener, ours, stock

BATCH = """
    import os, signal, sqlite3, sys, time
    from contextlib import closing
    from itertools import repeat
    from pathlib import Path
    from langchain_core.messages import HumanMessage, ToolMessage
    from loopwright.testing import Response
    from tests.drop_in import agents
    from tests.support.graphs import on
    from tests.support.savers import ours

    folder, killed = Path(sys.argv[1]), len(sys.argv) > 2
    database = folder / "threads.db"

    def stored():
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute(
                "SELECT count(DISTINCT task_id) FROM writes WHERE channel = 'messages'"
                " AND instr(value, 'done with') > 0"
            ).fetchone()[0]

    def work(part: int) -> str:
        '''Do a part of the work.'''
        with open(folder / "effects", "a") as file:
            file.write(f"{part} ")
        if killed and part == 3:
            while stored() < 2:  # the results of the others
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"done with {part}"

    def answer(messages):
        if isinstance(messages[-1], ToolMessage):
            return "all done"
        return Response(calls=[(f"c{part}", "work", {"part": part}) for part in (1, 2, 3)])

    agents.answer = answer
    with ours(database) as saver:
        graph = agents.langchain_agent(saver, [work])
        given = {"messages": [HumanMessage("go", id="h")]} if killed else None
        state = graph.invoke(given, on("t"), durability="sync")
        print([message.text for message in state["messages"]])
"""


def test_calls_that_had_finished_before_a_kill_do_not_run_again(tmp_path: Path) -> None:
    with start(BATCH, tmp_path, "kill") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err
    assert sorted((tmp_path / "effects").read_text().split()) == ["1", "2", "3"]
    parts = [f"done with {part}" for part in (1, 2, 3)]
    assert output(BATCH, tmp_path) == str(["go", "", *parts, "all done"])
    assert sorted((tmp_path / "effects").read_text().split()) == ["1", "2", "3", "3"]


class Marked(AgentMiddleware):
    """Marks every answer in place, as no reducer would notice."""

    def after_model(self, state: Any, runtime: Any) -> None:
        state["messages"][-1].additional_kwargs["mark"] = "was here"


@pytest.mark.parametrize("opened", [ours, stock])
def test_an_edit_in_place_of_the_last_message_is_stored(opened: Opener, tmp_path: Path) -> None:
    with opened(tmp_path / "threads.db") as saver:
        converse(langchain_agent(saver, middleware=[Marked()]), ("2",))
    with opened(tmp_path / "threads.db") as saver:
        (newest,) = history(langchain_agent(saver), 1)
    assert newest.count("was here") == 3
